/** Benchmarks encoding and decoding of objects, compared with JSON.parse and JSON.stringify for the same text. */
import { Buffer } from 'node:buffer'

import { schemaFor } from '#apis/schemas.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { decodeObject } from '#meta/codec/object.ts'
import { encodeProtobuf } from '#meta/codec/protobuf.ts'
import type { GroupVersionKind } from '#meta/kind.ts'

import { type Bench, compareRates, type Contestant, type Rate } from './bench.ts'
import { podKind, podListKind, samplePod, samplePodList } from './sample-pod.ts'
import { figure, type Table, times } from './table.ts'

const LIST_LENGTH = 500

interface Subject {
  readonly title: string
  readonly gvk: GroupVersionKind
  readonly object: JsonObject
}

export const bench: Bench = {
  about: 'decoding and encoding, as a ratio to JSON.parse and JSON.stringify of the same text in the same run',
  async run() {
    const tables: Table[] = []
    for (const subject of [
      { title: 'a Pod', gvk: podKind, object: samplePod(0) },
      { title: `a list of ${LIST_LENGTH} Pods`, gvk: podListKind, object: samplePodList(LIST_LENGTH) },
    ]) {
      tables.push(await measure(subject))
    }
    return tables
  },
}

async function measure({ title, gvk, object }: Subject): Promise<Table> {
  const schema = schemaFor(gvk)
  if (schema === undefined) throw new Error(`No schema for "${gvk.kind}"`)
  const text = encodeJson(object)
  const json = Buffer.from(text)
  const protobuf = encodeProtobuf(schema, gvk, object)
  const decoders: Contestant[] = [
    { name: 'JSON.parse', run: () => JSON.parse(text) as unknown },
    { name: 'decode JSON text', run: () => decodeObject(text, 'application/json', { schemaFor }) },
    { name: 'decode JSON bytes', run: () => decodeObject(json, 'application/json', { schemaFor }) },
    {
      name: 'decode JSON bytes, strict',
      run: () => decodeObject(json, 'application/json', { schemaFor, validation: 'Strict' }),
    },
    {
      name: 'decode protobuf',
      run: () => decodeObject(protobuf, 'application/vnd.kubernetes.protobuf', { schemaFor }),
    },
  ]
  const encoders: Contestant[] = [
    { name: 'JSON.stringify', run: () => JSON.stringify(object) },
    { name: 'encode JSON text', run: () => encodeJson(object) },
    { name: 'encode protobuf', run: () => encodeProtobuf(schema, gvk, object) },
  ]
  const rows = [...(await compareRates(decoders)), ...(await compareRates(encoders))].map(rowOf)
  return {
    title: `${title}: ${figure(text.length)} bytes of JSON, ${figure(protobuf.length)} of protobuf`,
    columns: ['', 'per second', 'ratio'],
    rows,
  }
}

function rowOf({ name, perSecond, ratio }: Rate): string[] {
  return [name, figure(perSecond), times(ratio)]
}
