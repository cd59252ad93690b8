"""What the Python tests share: check, refused, skip, and the count line at the end."""
import sys

passed = failed = skipped = 0


def check(name, truth, *shown):
    global passed, failed
    if truth:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {name}", *shown)


def equal(name, got, wanted):
    check(name, got == wanted, f"got {got!r}, wanted {wanted!r}")


def refused(name, kind, words, call):
    """call must raise `kind` with a text that has `words`."""
    try:
        call()
    except kind as error:
        check(name, words in str(error), f"{words!r} is not in {str(error)!r}")
        return
    except Exception as error:  # noqa: BLE001 - another kind is the failure
        check(name, False, f"{type(error).__name__}: {error}")
        return
    check(name, False, "nothing was raised")


def skip(what, why):
    global skipped
    skipped += 1
    print(f"skipped: {what}: {why}")


def done(name):
    print(f"{name}: {passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(failed > 0)
