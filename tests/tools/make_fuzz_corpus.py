#!/usr/bin/env python3
"""Writes the seeds of the fuzzers into tests/fuzz/corpus: small files, each for a part of a reader or a way to be wrong. The JPEG files, mini.json
and text.bin there are older and are kept. What a fuzzer found once is kept beside them as found-*, and as
reached-* some of the small inputs that reach code which no seed reaches. Run in the repository's root."""
import json
import os
import struct
import zlib

root = 'tests/fuzz/corpus/'


def write(name, data):
    os.makedirs(os.path.dirname(root + name), exist_ok=True)
    with open(root + name, 'wb') as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def compact(value):
    return json.dumps(value, separators=(',', ':'), ensure_ascii=False)


# ---- json: the grammar, lines of data sets, VQA's official files
write('json/values.json', '[null,true,false,0,-0,1,-1.5,1e5,1E-5,0.1,123456789012345678,-9223372036854775808,1.7976931348623157e308,5e-324,1e-400,1e400]')
write('json/strings.json', r'{"":"","\u0041\ud83d\ude00":"\"\\\/\b\f\n\r\t","é漢😀":"\u0000\u001f","a":"'+'x'*70+'"}')
write('json/nested.json', '['*60+'{"a":[]}'+']'*60)
write('json/too-deep.json', '['*70+']'*70)
write('json/duplicates.json', '{"a":1,"b":{"a":2},"a":3}')
write('json/blanks.json', ' \t\r\n{ "a" : [ 1 , 2 ] , "b" : { } }\n ')
write('json/row.json', compact({'id': 'x/1', 'image': 'cat.jpg', 'question': 'What is it?', 'answers': ['cat', 'a cat'], 'style': 'vqa2'}))
write('json/options.json', compact({'id': 7, 'question': 'Which?', 'options': ['red', 'blue'], 'answer': 1, 'hint': 'é', 'question_type': None}))
write('json/vqa-questions.json', compact({'info': {'year': 2017}, 'license': {'url': ''}, 'task_type': 'Open-Ended', 'data_subtype': 'val2014', 'questions': [
    {'image_id': 262148, 'question': 'Where is he looking?', 'question_id': 262148000}, {'image_id': 1, 'question': '', 'question_id': 1}]}))
write('json/vqa-annotations.json', compact({'annotations': [{'question_type': 'none of the above', 'multiple_choice_answer': 'down', 'answers': [
    {'answer': 'down', 'answer_confidence': 'yes', 'answer_id': 1}, {'answer': 'at table', 'answer_confidence': 'maybe', 'answer_id': 2}],
    'image_id': 262148, 'answer_type': 'other', 'question_id': 262148000}]}))
for name, text in (('bad-comma', '[1,]'), ('bad-zero', '[01]'), ('bad-escape', r'["\x"]'), ('bad-surrogate', r'["\ud800"]'), ('bad-end', '{"a":'), ('bad-tail', '{} x'),
                   ('bad-nan', '[NaN]'), ('bad-sign', '[+1,.5,1.,-]'), ('bad-control', '["\x01"]')):
    write('json/%s.json' % name, text)
write('json/bad-utf8.json', b'["\xff\xc0\x80\xed\xa0\x80"]')
write('json/nul.json', b'{"a\\u0000b":1}\0')

# ---- tokenizer: an odd first byte is a tokenizer.json ('{' is odd), an even one a text
with open(root + 'tokenizer/mini.json', encoding='utf-8') as file:
    mini = json.load(file)


def changed(name, change):
    copy = json.loads(json.dumps(mini))
    change(copy)
    write('tokenizer/%s.json' % name, compact(copy))


changed('no-normaliser', lambda t: t.update(normalizer=None, post_processor=None))
changed('unknown-option', lambda t: t['pre_tokenizer'].update(use_regex=False))
changed('merges-in-pairs', lambda t: t['model'].update(merges=[m.split(' ', 1) if isinstance(m, str) else ' '.join(m) for m in t['model']['merges']]))
changed('merge-unknown', lambda t: t['model']['merges'].append('x qq'))
changed('byte-fallback', lambda t: t['model'].update(byte_fallback=True))
changed('id-twice', lambda t: t['added_tokens'][1].update(id=0))
changed('ignore-merges', lambda t: (t['model'].update(ignore_merges=True), t['model']['vocab'].update(bab=10)))
changed('id-far', lambda t: t['added_tokens'][1].update(id=1 << 22))
changed('stripping', lambda t: t['added_tokens'][1].update(lstrip=True, rstrip=True, single_word=True))
changed('truncation', lambda t: t.update(truncation={'max_length': 3, 'strategy': 'LongestFirst', 'stride': 0, 'direction': 'Right'}))
changed('vocabulary-empty', lambda t: t['model'].update(vocab={}, merges=[]))
changed('not-byte-level', lambda t: t['decoder'].update(type='Metaspace'))
write('tokenizer/compose.bin', b'\0' + 'e\u0301 a\u0323\u0307 \u1100\u1161\u11a8 \u0f71\u0f72 \u2126 \u0958 \ufb1d'.encode())
write('tokenizer/words.bin', b'\0' + "I'll we've\n\n  x\u00a0\u3000y 12٣Ⅷ½ <|endoftext|> <|endoftext <|| '".encode())
write('tokenizer/one-word.bin', b'\0' + b'abab' * 80)
write('tokenizer/not-utf8.bin', b'\0a\xff\xed\xa0\x80')

# ---- checkpoint: the first byte picks config.json, preprocessor_config.json, safetensors, index or score texts
config = {'block_type': 'moe', 'attention_layer_norm': True, 'image_padding_embed': 'pad_and_partial_pad', 'image_pooling_2d': 'attention-meanq',
          'include_bias': False, 'layer_norm_type': 'rms', 'rope': True, 'rope_impl': 'llama', 'weight_tying': False, 'd_model': 128, 'n_heads': 4,
          'n_layers': 4, 'moe_num_experts': 8, 'moe_top_k': 2, 'vocab_size': 655, 'embedding_size': 704, 'additional_vocab_size': 16, 'mlp_ratio': 1,
          'vit_layers': [-2, -4], 'vision_backbone': {'image_mlp_activations': 'quick_gelu', 'image_emb_dim': 64, 'image_num_heads': 4, 'image_head_dim': 16,
                                                      'image_mlp_dim': 256, 'image_num_key_value_heads': 4, 'image_num_layers': 5}}
write('checkpoint/config.bin', b'\0' + compact(config).encode())
for key, value in (('block_type', 'llama'), ('d_model', 0), ('d_model', 2 ** 31), ('n_heads', 3), ('vit_layers', [-9]), ('moe_top_k', 9), ('rope_theta', 'NaN'), ('mlp_ratio', 1e308)):
    write('checkpoint/config-%s-%s.bin' % (key.replace('_', '-'), str(value).strip('[]')), b'\0' + compact(dict(config, **{key: value})).encode())
preprocessor = {'base_image_input_size': [336, 336], 'image_mean': [0.48, 0.45, 0.4], 'image_std': [0.2, 0.2, 0.2], 'max_crops': 12, 'overlap_margins': [4, 4]}
write('checkpoint/preprocessor.bin', b'\1' + compact(preprocessor).encode())
write('checkpoint/preprocessor-zero.bin', b'\1' + compact(dict(preprocessor, image_std=[0.2, 0, 0.2], overlap_margins=[24, 24])).encode())


def tensors(name, header, data=b'01234567'):
    write('checkpoint/tensors-%s.bin' % name, b'\2' + (header if isinstance(header, str) else compact(header)).encode() + data)


def f32(shape, first, last, dtype='F32'):
    return {'dtype': dtype, 'shape': shape, 'data_offsets': [first, last]}


tensors('good', {'__metadata__': {'format': 'pt'}, 'a': f32([1, 2], 0, 8), 'b': f32([0], 8, 8, 'U8')})
tensors('overlap', {'a': f32([1], 0, 4), 'b': f32([1], 2, 6)})
tensors('gap', {'a': f32([1], 0, 4), 'b': f32([1], 5, 9)})
tensors('past-the-end', {'a': f32([4], 0, 16)})
tensors('backwards', {'a': f32([1], 8, 4)})
tensors('product', {'a': f32([2 ** 32, 2 ** 32, 2 ** 32], 0, 8)})
tensors('wrong-bytes', {'a': f32([3], 0, 8)})
tensors('unknown-type', {'a': f32([1], 0, 8, 'F7')})
tensors('twice', '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}')
tensors('negative', '{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}')
tensors('fraction', '{"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}}')
tensors('metadata', '{"__metadata__":{"a":1}}')
tensors('empty', '{}', b'')
tensors('trailing', {'a': f32([1], 0, 4)})
for name, text in (('good', {'metadata': {'total_size': 0}, 'weight_map': {'x': 'a', 'y': 'b'}}), ('outside', {'weight_map': {'x': '../a'}}), ('missing', {'weight_map': {'x': 'none'}}),
                   ('number', {'weight_map': {'x': 1}}), ('empty', {'weight_map': {}}), ('absolute', {'weight_map': {'x': '/etc/passwd'}})):
    write('checkpoint/index-%s.bin' % name, b'\3' + compact(text).encode())
write('checkpoint/scores.bin', b'\4' + "Answer: the U.S. dont, 1,000 - İ Σ.\n none Answer: x\n\n (A) 5% 1e3 \u0663 ' 'twas".encode())



# ---- images: one file each of the kinds that the reader tells apart, and headers that lie
def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))


def png(width, height, bits, color, rows, extra=b'', interlace=0, said=None):
    header = struct.pack('>IIBBBBB', *(said or (width, height)), bits, color, 0, 0, interlace)
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', header) + extra + chunk(b'IDAT', zlib.compress(rows, 9)) + chunk(b'IEND', b'')


def rows(height, row_bytes):
    return b''.join(bytes([i % 5]) + bytes((i * 37 + k * 11) & 255 for k in range(row_bytes)) for i in range(height))


write('image/rgb.png', png(9, 7, 8, 2, rows(7, 27)))
write('image/rgba16.png', png(5, 4, 16, 6, rows(4, 40)))
write('image/grey-alpha.png', png(6, 5, 8, 4, rows(5, 12)))
write('image/interlaced.png', png(8, 8, 8, 0, rows(1, 1) + rows(1, 1) + rows(1, 2) + rows(2, 2) + rows(2, 4) + rows(4, 4) + rows(4, 8), interlace=1))
write('image/said-huge.png', png(9, 7, 8, 2, rows(7, 27), said=(65535, 65535)))
write('image/said-zero.png', png(9, 7, 8, 2, rows(7, 27), said=(0, 7)))
write('image/said-larger.png', png(9, 7, 8, 2, rows(7, 27), said=(9, 8)))
write('image/no-palette.png', png(4, 4, 8, 3, rows(4, 4)))
write('image/short-palette.png', png(4, 4, 8, 3, rows(4, 4), extra=chunk(b'PLTE', b'\1\2\3')))
write('image/exif.png', png(9, 7, 8, 2, rows(7, 27), extra=chunk(b'eXIf', b'MM\0*\0\0\0\x08\0\1\x01\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0')))
with open(root + 'image/grey.jpg', 'rb') as file:
    grey = file.read()


def exif(order, orientation, offset=8):
    form = '<' if order == b'II' else '>'
    tiff = order + struct.pack(form + 'HI', 42, offset) + struct.pack(form + 'HHHIHHI', 1, 0x112, 3, 1, orientation, 0, 0)
    body = b'Exif\0\0' + tiff
    return grey[:2] + b'\xff\xe1' + struct.pack('>H', len(body) + 2) + body + grey[2:]


write('image/exif-6.jpg', exif(b'MM', 6))
write('image/exif-3-little.jpg', exif(b'II', 3))
write('image/exif-0.jpg', exif(b'II', 0))
write('image/exif-far.jpg', exif(b'MM', 6, 0xFFFFFFF0)[:200])
write('image/cut.jpg', grey[:len(grey) // 2])
frame = grey.index(b'\xff\xc0')
write('image/said-huge.jpg', grey[:frame + 5] + b'\xff\xff\xff\xff' + grey[frame + 9:frame + 400])
write('image/said-zero.jpg', grey[:frame + 5] + b'\0\0\0\1' + grey[frame + 9:frame + 400])
write('image/only-start.jpg', b'\xff\xd8\xff')
write('image/markers.jpg', b'\xff\xd8' + b'\xff\xfe\0\2' * 20 + b'\xff\xda\0\2')
write('image/gif.gif', b'GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;')
write('image/bmp.bmp', b'BM' + struct.pack('<IHHIIiiHHIIiiII', 58, 0, 0, 54, 40, 1, 1, 1, 24, 0, 4, 0, 0, 0, 0) + b'\1\2\3\0')

# ---- caption: the first byte picks raw (odd) or tokenised texts; 0xFF parts texts, 0xFE images
write('caption/two-images.bin', b'\0a dog runs\xffa dog runs fast\xffthe dog is running\xfetwo cats sit\xffcats on a mat\xfftwo cats')
write('caption/raw.bin', b"\1A man's hat (black & white) isn't on the table.\xffThe U.S. flag, it's 3.5 m high...\xfe'Hello' says the sign, \"closed\" 10:30 a.m.\xff"
      b"$5,000 1/2 AT&T t-shirt")
write('caption/rules.bin', b'\1' + "cannot gonna 'tis y'all d'you n't 'em '90s No. 5 B. The fig., (650) 555-1234 12/25/2014 2 1/2 :) ^_^ <a href=\"x\"> <!-- x --> http://x.y/z "
      "www.a.com a@b.c 1.jpg him/her/x A+B C++ US$5 #tag @me &amp; &#39; \\* a--b …… “” ½ € 漢字 İΣ".encode())
write('caption/empty-texts.bin', b'\0\xff\xff \xfe\xff')
write('caption/no-references.bin', b'\0a\xfeb\xffc')
write('caption/not-utf8.bin', b'\1a\0\1\xc3(\xe2\x80 \xf0\x9f\x98\x80<!\xf5>\xffb\x80 \xf4\x90\x80\x80')

# ---- ops: tables of operations
NUMBERS = ['calls', 'primitive_calls', 'host_total_ns', 'host_self_ns', 'host_cumulative_ns', 'host_min_ns', 'host_max_ns', 'device_total_ns', 'device_self_ns',
           'device_min_ns', 'device_max_ns', 'flops', 'bytes', 'host_memory_bytes', 'host_self_memory_bytes', 'device_memory_bytes',
           'device_self_memory_bytes', 'memory_peak_bytes']


def op(name, **other):
    row = {'name': name, 'stage': None, 'part': None, 'block': None, 'step': None, 'shape': [], 'file': None, 'line': 0, 'stack': []}
    row.update(dict.fromkeys(NUMBERS, 0), calls=1, primitive_calls=1)
    row.update(other)
    return row


def table(rows, **other):
    value = {'schema': 'vlmprof-ops-1', 'group_by': [], 'group_by_stack_n': 0, 'clock': 'host', 'sort_key': None, 'device_name': None,
             'ceilings': {'bytes_per_s': None, 'flops_per_s': None}, 'dropped': {'calls': 0, 'host_ns': 0, 'device_ns': 0}, 'rows': rows}
    value.update(other)
    return compact(value)


write('ops/empty.json', table([]))
write('ops/one.json', table([op('gemm', host_total_ns=100, host_self_ns=90)]))
write('ops/all.json', table(
    [op('<lambda>', stage='prefill', part='experts', block=3, step=1, shape=[64, 2048], file='a.c', line=7, stack=[{'name': 'f', 'file': 'b.c', 'line': 9}],
        calls=4, primitive_calls=2, host_total_ns=90, host_self_ns=80, host_cumulative_ns=70, host_min_ns=1, host_max_ns=60, device_total_ns=1500,
        device_self_ns=1500, device_max_ns=1500, flops=10 ** 9, bytes=10 ** 6, host_memory_bytes=-5000, memory_peak_bytes=7),
     op('schön "1",\n2', stage='*', block='*', shape='*')],
    group_by=['shape', 'stage', 'part', 'block', 'step', 'place'], group_by_stack_n=8, clock='device', sort_key='cumtime', device_name='CUDA',
    ceilings={'bytes_per_s': 4.8e12, 'flops_per_s': 9.9e14}, dropped={'calls': 5, 'host_ns': 6, 'device_ns': 7}))
write('ops/same-key.json', table([op('gemm', shape=[1]), op('gemm', shape=[2])]))
write('ops/too-many.json', table([op(str(i)) for i in range(17)]))
write('ops/overflow.json', table([op('a', host_total_ns=2 ** 63 - 1, host_self_ns=2 ** 63 - 1), op('b', host_total_ns=1)]))
write('ops/long-name.json', table([op('x' * 300, file='y' * 200, stack=[{'name': 'z' * 200, 'file': None, 'line': 0}])], group_by_stack_n=1))
write('ops/member-missing.json', table([op('a')]).replace('"flops":0,', ''))
write('ops/nul.json', table([op('a\0b')]))
write('ops/steps.json', table([op('ProfilerStep#1')]))

# ---- chat: first byte: API (3: a knob), content type, how it is cut (tests/fuzz/fuzz_chat.c); then what a server sends
chat, responses, ollama, knob = range(4)
unknown, events, lines, whole = (4 * i for i in range(4))


def stream(*objects, end='\n', before=''):
    return before + ''.join('data: ' + compact(o) + end * 2 for o in objects) + 'data: [DONE]' + end * 2


def delta(text, **other):
    value = {'model': 'm', 'choices': [{'index': 0, 'delta': {'content': text}, 'finish_reason': None}]}
    value['choices'][0]['delta'].update(other)
    return value


def sent(name, api, kind, text, cut=5):
    write('chat/' + name, bytes([api | kind | cut << 4]) + (text if isinstance(text, bytes) else text.encode()))


usage = {'choices': [], 'usage': {'prompt_tokens': 298, 'completion_tokens': 2, 'prompt_tokens_details': {'cached_tokens': 16, 'image_tokens': 256}}}
timings = dict(usage, timings={'cache_n': 1, 'prompt_n': 9, 'prompt_ms': 7.5, 'predicted_n': 2})
final = {'choices': [{'index': 0, 'delta': {}, 'finish_reason': 'length'}]}
sent('stream', chat, events, stream(delta('', role='assistant'), delta('Hello'), delta(' é😀'), final, usage))
sent('cr-lf', chat, events, stream(delta('Hel'), delta('lo'), final, timings, end='\r\n', before='\ufeff: ping\r\n\r\n'), 0)
sent('cr', chat, unknown, stream(delta('Hel'), delta('lo', reasoning='hm'), end='\r'), 2)
sent('reasoning', chat, events, stream(delta(None, reasoning_content='a', reasoning='a'), delta('b'), usage))
sent('error', chat, events, 'data: ' + compact(delta('half')) + '\n\ndata: {"error":{"message":"out of\\nmemory","code":500}}\n\n')
sent('error-event', chat, events, 'event: error\ndata: words\ndata: more\n\nerror: {"message":"slot"}\n\n')
sent('lines-of-data', chat, events, 'data: {"choices":\ndata: [{"delta":{"content":"x"}}]}\nid: 1\nretry: 5\n\ndata: [DONE]\n\n')
sent('whole', chat, whole, compact({'model': 'm', 'choices': [{'message': {'content': [{'type': 'text', 'text': 'A'}], 'refusal': None}, 'finish_reason': 'stop'}], 'usage': None}))
sent('responses', responses, events, stream({'type': 'response.reasoning_text.delta', 'delta': 'r'}, {'type': 'response.output_text.delta', 'delta': 't'}, {
    'type': 'response.completed', 'response': {'status': 'completed', 'error': None, 'model': 'm', 'output': [], 'usage': {'input_tokens': 3, 'output_tokens': 2,
    'input_tokens_details': {'cached_tokens': 0}, 'output_tokens_details': {'reasoning_tokens': 1}}}}))
sent('responses-whole', responses, whole, compact({'status': 'incomplete', 'incomplete_details': {'reason': 'max_output_tokens'}, 'output': [
    {'type': 'reasoning', 'summary': [{'text': 's'}]}, {'type': 'message', 'content': [{'type': 'output_text', 'text': 'T'}]}]}))
sent('responses-failed', responses, events, stream({'type': 'error', 'message': 'gone'}, {'type': 'response.failed', 'response': {'status': 'failed', 'error': {'message': 'm'}}}))
sent('ollama', ollama, lines, '\n'.join(compact(o) for o in ({'model': 'o', 'message': {'content': '', 'thinking': 't'}, 'done': False}, {'message': {'content': 'Hi'}}, {
    'done': True, 'done_reason': 'stop', 'total_duration': 9, 'load_duration': 1, 'prompt_eval_count': 12, 'prompt_eval_duration': 5, 'eval_count': 2, 'eval_duration': 3})))
sent('ollama-error', ollama, lines, '{"error":"stopped"}\n')
sent('page', chat, whole, '<html>502</html>')
sent('too-long', chat, events, stream(*(delta('0123456789' * 6) for _ in range(11))))
sent('long-event', chat, events, 'data: ' + 'x' * 700)
sent('bad-utf8', chat, events, b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n')
sent('nul', chat, whole, b'{"model":"a\\u0000b","choices":[{"message":{"content":"\\u0000"}}]}\0')
for name, path, value in (('new', 'mm_processor_kwargs.max_pixels', '1024'), ('images', 'image_url.detail', 'low'), ('every', 'messages[*].content[*].x.y', ' {"z": null} '),
                          ('item', 'messages[0].content[1]', '[]'), ('replaced', 'messages', '{}'), ('key', 'model.x', '1'), ('wrong', 'a..b[', '"')):
    sent('knob-' + name, knob, unknown, path.encode() + b'\xff' + value.encode())

