// Writes a model of the shape of BERT base (12 layers, 12 heads of 64) with small
// random weights and a small vocabulary: what matters is the size of its matrices.
import { mkdirSync, openSync, writeSync, closeSync, writeFileSync } from 'node:fs';

const hidden = 768, middle = 16, layers = 12, positions = 512;
const words = ['the', 'cat', 'sat', 'on', 'mat', 'un', '##rip', '##ened', ',', '.', 'time', 'flies', 'like', 'a'];
const vocabulary = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', ...words];

const shapes = [
  ['embeddings.word_embeddings.weight', [vocabulary.length, hidden]],
  ['embeddings.position_embeddings.weight', [positions, hidden]],
  ['embeddings.token_type_embeddings.weight', [2, hidden]],
  ['embeddings.LayerNorm.weight', [hidden]], ['embeddings.LayerNorm.bias', [hidden]],
  ...Array.from({ length: layers }, (_, l) => [
    ['attention.self.query', hidden, hidden], ['attention.self.key', hidden, hidden], ['attention.self.value', hidden, hidden],
    ['attention.output.dense', hidden, hidden], ['attention.output.LayerNorm', hidden],
    ['intermediate.dense', middle, hidden], ['output.dense', hidden, middle], ['output.LayerNorm', hidden]
  ].flatMap(([name, rows, columns]) => [
    [`encoder.layer.${l}.${name}.weight`, columns ? [rows, columns] : [rows]], [`encoder.layer.${l}.${name}.bias`, [rows]]
  ])).flat()
];

// Numbers of a linear congruential generator, the same on every machine.
let seed = 1;
const random = () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 2 ** 32 - 0.5;
function fill(name, count) {
  const norm = name.endsWith('LayerNorm.weight'), scale = name.includes('query') || name.includes('key') ? 0.12 : 0.06;
  return Float32Array.from({ length: count }, () => norm ? 1 : name.endsWith('bias') ? 0 : scale * random());
}

export function writeBaseModel(folder) {
  mkdirSync(folder, { recursive: true });
  let offset = 0;
  const header = {};
  for (const [name, shape] of shapes) {
    const bytes = 4 * shape.reduce((a, b) => a * b, 1);
    header[name] = { dtype: 'F32', shape, data_offsets: [offset, offset += bytes] };
  }
  const text = Buffer.from(JSON.stringify(header)), padded = Buffer.alloc(Math.ceil(text.length / 8) * 8, ' ');
  text.copy(padded);
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(padded.length));
  const file = openSync(`${folder}/model.safetensors`, 'w');
  writeSync(file, size);
  writeSync(file, padded);
  for (const [name, shape] of shapes) writeSync(file, fill(name, shape.reduce((a, b) => a * b, 1)));
  closeSync(file);
  writeFileSync(`${folder}/vocab.txt`, vocabulary.join('\n') + '\n');
  writeFileSync(`${folder}/config.json`, JSON.stringify({
    model_type: 'bert', hidden_size: hidden, num_hidden_layers: layers, num_attention_heads: 12, intermediate_size: middle,
    vocab_size: vocabulary.length, max_position_embeddings: positions, type_vocab_size: 2, hidden_act: 'gelu', layer_norm_eps: 1e-12
  }));
}

if (process.argv[2]) writeBaseModel(process.argv[2]);
