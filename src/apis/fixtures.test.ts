/** Tests encoding and decoding with upstream's samples of every kind, in JSON, YAML and protobuf. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { describe, it } from 'node:test'

import { stringifyJson } from '#lib/json/json.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { decodeObject } from '#meta/codec/object.ts'
import { decodeMessage } from '#meta/codec/protobuf-decode.ts'
import { decodeEnvelope, encodeEnvelope, encodeMessage } from '#meta/codec/protobuf.ts'
import { type GroupVersionKind, kindOf } from '#meta/kind.ts'
import type { StructSchema } from '#meta/schema.ts'

import { schemaFor } from './schemas.ts'

const facts = process.env['HYPERKUBE_API_FACTS'] ?? resolve(import.meta.dirname, '../../../shared/kubernetes-api')
const fixtures = `${facts}/fixtures`
const skip = existsSync(fixtures) ? false : `no API facts in "${facts}"`

/** The one fixture that does not say what it is. */
const watchEvent: GroupVersionKind = { group: '', version: 'v1', kind: 'WatchEvent' }

interface Fixture {
  readonly name: string
  readonly json: string
  readonly yaml: string
  readonly protobuf: Buffer
  readonly schema: StructSchema
  readonly gvk: GroupVersionKind
}

describe('recorded objects of upstream', { skip }, () => {
  const all = skip === false ? readFixtures() : []

  it('decode from JSON and encode to the same JSON and the same protobuf', (test) => {
    for (const { name, json, protobuf, schema, gvk } of all) {
      const { object } = decodeJson(json, gvk)
      assert.equal(encodeJson(object), stringifyJson(JSON.parse(json)), name)
      const bytes = encodeEnvelope(kindOf(JSON.parse(json)), encodeMessage(schema, object))
      assert.ok(bytes.equals(protobuf), `${name}: protobuf differs`)
    }
    test.diagnostic(`are ${all.length} files`)
    assert.equal(all.length, 185)
  })

  it('decode from protobuf to the same objects as from JSON', () => {
    for (const { name, json, protobuf, schema } of all) {
      const { apiVersion, kind, message } = decodeEnvelope(protobuf)
      const typeMeta = kind === '' ? {} : { kind, apiVersion }
      assert.deepEqual({ ...typeMeta, ...decodeMessage(schema, message) }, JSON.parse(json), name)
    }
  })

  it('decode from YAML to the same objects as from JSON', () => {
    for (const { name, json, yaml, gvk } of all) {
      const options = { schemaFor, defaultKind: gvk, validation: 'Strict' } as const
      const { object } = decodeObject(yaml, 'application/yaml', options)
      assert.deepEqual(object, JSON.parse(json), name)
    }
  })

  it('decode from JSON to the same object with keys in any order', () => {
    for (const { name, json, gvk } of all) {
      const once = encodeJson(decodeJson(json, gvk).object)
      assert.equal(encodeJson(decodeJson(once, gvk).object), once, name)
      const shuffled = JSON.stringify(reversed(JSON.parse(json)))
      assert.equal(encodeJson(decodeJson(shuffled, gvk).object), once, name)
    }
  })
})

function decodeJson(json: string, gvk: GroupVersionKind): ReturnType<typeof decodeObject> {
  return decodeObject(json, 'application/json', {
    schemaFor,
    defaultKind: gvk,
    validation: 'Strict',
  })
}

function readFixtures(): Fixture[] {
  const names = readdirSync(fixtures)
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.replace(/\.json$/, ''))
  return names.map((name) => {
    const json = readFileSync(`${fixtures}/${name}.json`, 'utf8')
    const object = JSON.parse(json) as { kind?: string; apiVersion?: string }
    const gvk = object.kind === undefined ? watchEvent : kindOf(object)
    const schema = schemaFor(gvk)
    assert.ok(schema, `no schema for ${name}`)
    const yaml = readFileSync(`${fixtures}/${name}.yaml`, 'utf8')
    return { name, json, yaml, protobuf: readFileSync(`${fixtures}/${name}.pb`), schema, gvk }
  })
}

/** The same value with the keys of everything but raw values in reverse. */
function reversed(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return Array.isArray(value) ? value.map(reversed) : value
  if ('apiVersion' in value && value.apiVersion === 'example.com/v1') return value
  return Object.fromEntries(
    Object.entries(value as JsonObject)
      .toReversed()
      .map(([key, member]) => [key, reversed(member)]),
  )
}
