import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { Readable, Writable } from 'node:stream'
import { describe, it } from 'node:test'

import { schemaFor } from '#apis/schemas.ts'
import { runProgram } from '#kits/cmd/run-program.ts'
import { StopSignal } from '#lib/program.ts'
import { encodeProtobuf } from '#meta/codec/protobuf.ts'

import { codec } from './codec.ts'

interface Outcome {
  readonly code: number
  readonly bytes: Buffer
  readonly text: string
  readonly err: string
}

async function run(input: string | Buffer, ...args: string[]): Promise<Outcome> {
  const chunks: Buffer[] = []
  const stdout = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk)
      done()
    },
  })
  const bytes = Buffer.from(input)
  // In two chunks, as a pipe may deliver it.
  const stdin = (): Readable => Readable.from([bytes.subarray(0, 3), bytes.subarray(3)])
  const { signal } = new AbortController()
  const { code, err } = await runProgram((context) => codec.run(context, signal), { args, stdin, stdout })
  const out = Buffer.concat(chunks)
  return { code, bytes: out, text: out.toString(), err }
}

const gvk = { group: '', version: 'v1', kind: 'ConfigMap' }
const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'a', namespace: 'b' }, data: { k: 'v' } }
const json = `${JSON.stringify(object)}\n`
const yaml = 'apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: b\n'
const protobuf = encodeProtobuf(schemaFor(gvk)!, gvk, object)
const custom = '{"apiVersion":"example.com/v1","b":1.5,"kind":"Thing","metadata":{"name":"a"}}\n'
const list = (...items: string[]): string =>
  `{"kind":"List","apiVersion":"v1","metadata":{},"items":[${items.join(',')}]}\n`

describe('hyperkube codec', () => {
  const forms = { json, yaml, protobuf }
  for (const [from, input] of Object.entries(forms)) {
    for (const [to, output] of Object.entries(forms)) {
      it(`converts ${from} to ${to}, with or without a flag for the input format`, async () => {
        for (const given of ['auto', from]) {
          const { code, bytes, err } = await run(input, `--from=${given}`, `--to=${to}`)
          assert.deepEqual([code, err], [0, ''])
          assert.ok(bytes.equals(Buffer.from(output)), bytes.toString())
        }
      })
    }
  }

  it('reads the output of etcdctl: an optional line with the key, and a newline after the value', async () => {
    const value = Buffer.concat([protobuf, Buffer.from('\n')])
    assert.equal((await run(value, '--to=json')).text, json)
    const keyed = Buffer.concat([Buffer.from('/registry/configmaps/b/a\n'), value])
    assert.equal((await run(keyed, '--to=json')).text, json)
  })

  it('indents JSON on request', async () => {
    assert.equal((await run(json, '--to=json', '--pretty')).text, `${JSON.stringify(object, undefined, 2)}\n`)
  })

  it('reads several YAML documents and skips those with only comments', async () => {
    const { text, err, code } = await run(`# licence\n---\n${yaml}---\n\n---\n# end\n---\n${custom}`, '--to=json')
    assert.deepEqual([code, err], [0, ''])
    assert.equal(text, list(json.trim(), custom.trim()))
  })

  it('reads an array as several objects and writes several objects as YAML documents', async () => {
    const { text } = await run(`[${json},${custom}]`)
    assert.equal(text, `${yaml}---\napiVersion: example.com/v1\nb: 1.5\nkind: Thing\nmetadata:\n  name: a\n`)
  })

  it('decodes each item of a List by its kind and keeps the List', async () => {
    const { text, err } = await run(list('{"apiVersion":"v1","kind":"ConfigMap","x":1}', custom), '--to=json')
    assert.equal(text, list('{"kind":"ConfigMap","apiVersion":"v1","metadata":{}}', custom.trim()))
    assert.equal(err, 'Warning: unknown field "x"\n')
    const back = await run((await run(text, '--to=protobuf')).bytes, '--to=json')
    assert.equal(back.text, text)
  })

  it('keeps int64 values exact', async () => {
    const input = '{"kind":"Pod","apiVersion":"v1","spec":{"activeDeadlineSeconds":9223372036854775807}}'
    const { bytes } = await run(input, '--to=protobuf')
    assert.match((await run(bytes, '--to=json')).text, /"activeDeadlineSeconds":9223372036854775807/)
  })

  it('warns of unknown fields, and rejects them in strict mode', async () => {
    const input = '{"kind":"ConfigMap","apiVersion":"v1","spec":{},"data":{"a":"1","a":"2"}}'
    const lenient = await run(input, '--to=json')
    assert.equal(lenient.code, 0)
    assert.equal(lenient.err, 'Warning: unknown field "spec"\nWarning: duplicate field "data.a"\n')
    const strict = await run(input, '--to=json', '--strict')
    assert.deepEqual([strict.code, strict.text], [1, ''])
    assert.equal(strict.err, 'Error: strict decoding error: unknown field "spec", duplicate field "data.a"\n')
    const inArray = await run(`[${input}]`, '--strict')
    assert.equal(inArray.err, 'Error: strict decoding error: duplicate field "[0].data.a"\n')
  })

  it('converts watch events, which have no kind, to every format', async () => {
    const event = '{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}}\n'
    const { bytes } = await run(event, '--to=protobuf')
    assert.equal(bytes.subarray(0, 10).toString('hex'), '6b3873000a040a001200')
    assert.equal((await run(bytes, '--to=json')).text, event)
    const { text: yaml } = await run(bytes)
    assert.equal((await run(yaml, '--to=json')).text, event)
    const strict = await run('{"type":"ADDED","object":{},"more":1}', '--strict')
    assert.equal(strict.err, 'Error: strict decoding error: unknown field "more"\n')
  })

  it('converts an object to another API version', async () => {
    const event = '{"kind":"Event","apiVersion":"v1","metadata":{"name":"a"},"message":"hello"}'
    const { text } = await run(event, '--to=json', '--output-version=events.k8s.io/v1')
    assert.match(text, /^\{"kind":"Event","apiVersion":"events\.k8s\.io\/v1",.*"note":"hello"/)
    const listed = await run(list(event), '--to=json', '--output-version=events.k8s.io/v1')
    assert.match(listed.text, /"kind":"List","apiVersion":"v1".*"note":"hello"/)
  })

  const refusals: readonly [name: string, input: string | Buffer, args: readonly string[], message: string][] = [
    ['empty input', ' \n', [], 'Standard input contains no object'],
    ['input with only comments', '# a\n', [], 'Standard input contains no object'],
    [
      'an encrypted value',
      Buffer.from('k8s:enc:aesgcm:v1:key1:\u0001\u0002', 'latin1'),
      [],
      'The value is encrypted by provider "aesgcm" (v1) with key "key1": read the object through an API server that ' +
        'has the key, or decrypt it first',
    ],
    [
      'a custom resource as protobuf',
      custom,
      ['--to=protobuf'],
      'Kind "Thing" of "example.com/v1" is not built in and has no protobuf form: use --to json or --to yaml',
    ],
    ['an object without kind', '{"a":1}', [], 'The object has no type: it needs "kind" and "apiVersion"'],
    ['an object without version', '{"kind":"Pod"}', [], 'The object of kind "Pod" needs an "apiVersion"'],
    ['invalid JSON', '{', [], "couldn't get version/kind; json parse error: unexpected end of JSON input"],
    ['an unterminated array', '[', [], 'unexpected end of JSON input'],
    [
      'a wrong type in the second of two objects',
      `${yaml}---\nkind: ConfigMap\napiVersion: v1\ndata: 1\n`,
      [],
      'Object 2: json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string',
    ],
    [
      'invalid protobuf',
      json,
      ['--from=protobuf'],
      'provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]',
    ],
    ['a truncated protobuf message', protobuf.subarray(0, -5), [], 'unexpected EOF'],
    [
      'a version that the kind does not have',
      json,
      ['--output-version=apps/v1'],
      'no kind "ConfigMap" is registered for version "apps/v1" in scheme "pkg/api/legacyscheme/scheme.go:30"',
    ],
    ['an invalid version', json, ['--output-version=a/b/c'], '--output-version: unexpected GroupVersion string: a/b/c'],
  ]
  for (const [name, input, args, message] of refusals) {
    it(`rejects ${name}`, async () => {
      const { code, text, err } = await run(input, ...args)
      assert.deepEqual([code, text, err], [1, '', `Error: ${message}\n`])
    })
  }

  it('rejects an unknown output format', async () => {
    const { code, err } = await run(json, '--to=cbor')
    assert.equal(code, 1)
    assert.match(err, /invalid argument "cbor" for "--to" flag: must be one of "json", "yaml", "protobuf"/)
  })

  it('stops reading input when it is aborted', async () => {
    const stop = new AbortController()
    const endless = new Readable({ read: () => undefined })
    const outcome = runProgram((context) => codec.run(context, stop.signal), { args: [], stdin: () => endless })
    stop.abort(new StopSignal('SIGINT', 2))
    assert.equal((await outcome).code, 130)
  })
})
