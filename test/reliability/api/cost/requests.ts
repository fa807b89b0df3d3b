/**
 * Generates large requests: every kind, verb and patch type, with one field grown. A series depends only on its seed.
 */
import type { Kind } from '#apis/kinds.ts'
import { schemaFor } from '#apis/schemas.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { createSeededRandom, type Random } from '#lib/random.ts'
import { stringifyYaml } from '#lib/yaml/yaml.ts'
import { encodeProtobuf } from '#meta/codec/protobuf.ts'

import { collectionOf, complete, pathOf } from '../../../refusals/asking.ts'
import type { KindCases } from '../../../refusals/case.ts'
import { everyCase } from '../../../refusals/index.ts'
import { credentials } from '../program.ts'
import type { RawRequest } from '../raw-http.ts'
import { type Field, fieldsOf, type Json } from './fields.ts'
import { drawGrowth, type Growth, grownValue, onlyField, pointerTo, withField } from './growing.ts'

export interface CostRequest extends RawRequest {
  /** The grown field and its content, for reports. */
  readonly about: string
}

const PATCHES = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const
const PROTOBUF = 'application/vnd.kubernetes.protobuf'

/** Kinds with the fields that can grow, in the order of their cases. */
export interface Subject {
  readonly cases: KindCases
  readonly fields: readonly Field[]
}

export function subjects(): Subject[] {
  const metadataOnly = schemaFor({ group: '', version: 'v1', kind: 'ConfigMap' })?.fields.get('metadata')
  return everyCase.map((cases) => {
    const schema = schemaFor(cases.kind)
    if (schema !== undefined) return { cases, fields: fieldsOf(schema) }
    const custom: Field = { path: ['spec'], schemas: [], schema: { type: 'any', goType: 'json' } }
    const metadata = metadataOnly === undefined ? [] : fieldsOf(metadataOnly.schema)
    return { cases, fields: [custom, ...metadata.map((field) => below(field, 'metadata'))] }
  })
}

function below(field: Field, name: string): Field {
  const root = { type: 'struct', goType: '', fields: new Map(), mapType: 'granular', preserveUnknown: true } as const
  return { ...field, path: [name, ...field.path], schemas: [root, ...field.schemas] }
}

interface Target {
  readonly kind: Kind
  readonly object: Json
  readonly grown: Json
  readonly growth: Growth
  /** The grown value of the field. */
  readonly value: unknown
  readonly collection: string
  readonly path: string
  readonly about: string
}

type Delivery = (target: Target, random: Random) => readonly Omit<RawRequest, 'about'>[]

const json = { 'content-type': 'application/json' }
const DRY = 'dryRun=All'

function put(path: string, body: unknown, headers: Record<string, string> = json): RawRequest {
  return { method: 'PUT', path, body: bodyOf(body), headers }
}

function post(path: string, body: unknown, headers: Record<string, string> = json): RawRequest {
  return { method: 'POST', path, body: bodyOf(body), headers }
}

function patch(type: keyof typeof PATCHES, path: string, body: unknown): RawRequest {
  return { method: 'PATCH', path, body: bodyOf(body), headers: { 'content-type': PATCHES[type] } }
}

function bodyOf(body: unknown): string | Buffer {
  return typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
}

/** Every way in which something large gets into the server. */
export const DELIVERIES: Readonly<Record<string, Delivery>> = {
  create: ({ collection, grown }) => [post(`${collection}?${DRY}`, grown)],
  strict: ({ collection, grown }) => [post(`${collection}?${DRY}&fieldValidation=Strict`, grown)],
  yaml: ({ collection, grown }) => [
    post(`${collection}?${DRY}`, stringifyYaml(grown), { 'content-type': 'application/yaml' }),
  ],
  protobuf: ({ collection, grown, kind }) => {
    const schema = schemaFor(kind)
    if (schema === undefined) return []
    return [
      post(`${collection}?${DRY}`, encodeProtobuf(schema, kind, grown as JsonObject), { 'content-type': PROTOBUF }),
    ]
  },
  update: (target) => stored(target, ({ path, grown }) => [put(`${path}?${DRY}`, grown)]),
  merge: (target) => stored(target, ({ path }) => [patch('merge', `${path}?${DRY}`, partOf(target))]),
  strategic: (target) => stored(target, ({ path }) => [patch('strategic', `${path}?${DRY}`, partOf(target))]),
  json: (target) => stored(target, ({ path }) => [patch('json', `${path}?${DRY}`, addition(target))]),
  elements: (target, random) =>
    stored(target, ({ path }) => [patch('json', `${path}?${DRY}`, additions(target, random))]),
  apply: (target) =>
    stored(target, ({ path, grown }) => [
      patch('apply', `${path}?${DRY}&fieldManager=one`, grown),
      patch('apply', `${path}?${DRY}&fieldManager=one&force=true`, grown),
    ]),
  status: (target) =>
    target.kind.subresources.some(({ name }) => name === 'status')
      ? stored(target, ({ path, grown }) => [put(`${path}/status?${DRY}`, grown)])
      : [],
  life: (target, random) => life(target, random),
}

/** With the object stored as it is before, and removed afterwards. */
function stored(target: Target, requests: (target: Target) => readonly RawRequest[]): readonly RawRequest[] {
  if (!target.kind.verbs.includes('get')) return []
  return [post(target.collection, target.object), ...requests(target), ...removal(target)]
}

function removal({ path }: Target): RawRequest[] {
  const options = { gracePeriodSeconds: 0, propagationPolicy: 'Background' }
  return [
    patch('merge', path, { metadata: { finalizers: null } }),
    { method: 'DELETE', path, body: JSON.stringify(options), headers: json },
  ]
}

function partOf({ growth, value }: Target): Json {
  return onlyField(growth.field, value)
}

function addition({ growth, value, grown }: Target): unknown[] {
  const top = growth.field.path[0] ?? ''
  return [
    { op: 'add', path: `/${top}`, value: grown[top] },
    { op: 'test', path: pointerTo(growth.field), value },
  ]
}

/** One operation for each element, in places of chance, and some that copy, move and remove. */
function additions(target: Target, random: Random): unknown[] {
  const { value, growth, grown } = target
  const pointer = pointerTo(growth.field)
  const items = Array.isArray(value) ? (value as unknown[]) : Object.values(value as object)
  const keys = Array.isArray(value) ? undefined : Object.keys(value as object)
  const [first] = addition({ ...target, grown })
  const operations: unknown[] = [first]
  for (let n = 0; n < Math.min(items.length, 9000); n++) {
    const at = keys === undefined ? String(random.int(items.length)) : `${keys[random.int(keys.length)]}`
    const from = `${pointer}/${at}`
    const kind = random.int(5)
    if (kind === 0) operations.push({ op: 'add', path: `${pointer}/${keys === undefined ? 0 : at}`, value: items[n] })
    else if (kind === 1) operations.push({ op: 'copy', from, path: `${pointer}/${keys === undefined ? 0 : `c${n}`}` })
    else if (kind === 2) operations.push({ op: 'test', path: from, value: items[Number(at)] ?? null })
    else if (kind === 3) operations.push({ op: 'move', from, path: from })
    else operations.push({ op: 'replace', path: from, value: items[n] })
  }
  return operations.filter((one) => (one as Json)['op'] !== 'test' || keys !== undefined).slice(0, 10_000)
}

/** Stored large, then read, changed and applied by several managers, then removed. */
function life(target: Target, random: Random): readonly RawRequest[] {
  const { collection, path, grown, kind } = target
  if (!kind.verbs.includes('get')) return []
  const reversed = Array.isArray(target.value) ? [...(target.value as unknown[])].reverse() : target.value
  const turned = withField(grown, target.growth.field, () => reversed)
  const reads = ['application/json', 'application/yaml', PROTOBUF, 'application/json;as=Table;v=v1;g=meta.k8s.io']
  const accept = reads[random.int(reads.length)] as string
  return [
    post(collection, grown),
    put(`${path}?${DRY}`, turned),
    put(path, turned),
    patch('strategic', `${path}?${DRY}`, partOf(target)),
    patch('merge', `${path}?${DRY}`, { metadata: { labels: { a: 'b' } } }),
    patch('apply', `${path}?fieldManager=one&force=true`, grown),
    patch('apply', `${path}?fieldManager=two&force=true`, turned),
    patch('apply', `${path}?fieldManager=one`, target.object),
    { path, headers: { accept } },
    { path: collection, headers: { accept } },
    ...removal(target),
  ]
}

/** A series of requests that belong together. */
export function seriesFor(all: readonly Subject[], seed: number, number: number): CostRequest[] {
  const random = createSeededRandom(seed * 1_000_003 + number)
  const subject = all[random.int(all.length)] as Subject
  const names = Object.keys(DELIVERIES)
  return seriesOf(subject, drawGrowth(random, subject.fields), names[random.int(names.length)] as string, random)
}

export function seriesOf({ cases }: Subject, growth: Growth, delivery: string, random: Random): CostRequest[] {
  const { kind } = cases
  const object = complete(kind, cases.valid)
  let value: unknown
  const grown = withField(object, growth.field, (sample) => (value = grownValue(random, growth, sample)))
  const about = [
    `${String(object['apiVersion'])} ${kind.kind}`,
    growth.field.path.join('.'),
    growth.likeness,
    growth.filling,
    `${growth.bytes} bytes`,
    delivery,
  ].join(', ')
  const isObject = kind.verbs.includes('get')
  const target: Target = {
    kind,
    object,
    grown,
    growth,
    value,
    collection: collectionOf(kind, object),
    path: isObject ? pathOf(kind, object) : '',
    about,
  }
  const isMany = typeof value === 'object' && value !== null
  if (delivery === 'elements' && !isMany) return []
  const requests = makeOrNone(() => (DELIVERIES[delivery] as Delivery)(target, random))
  return requests.map((request) => ({
    ...request,
    about,
    headers: { ...credentials('user'), ...request.headers },
  }))
}

/** Not every large value can be written in every form. */
function makeOrNone(make: () => readonly RawRequest[]): readonly RawRequest[] {
  try {
    return make()
  } catch {
    return []
  }
}
