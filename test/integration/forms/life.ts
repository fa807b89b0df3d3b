/**
 * Lists the requests from an object's creation to its deletion: reads, every kind of change, and all refusals. Each has
 * a second request that returns the expected content as plain JSON.
 */
import type { Kind } from '#apis/kinds.ts'
import { schemaFor } from '#apis/schemas.ts'
import { apiVersionOf } from '#meta/kind.ts'

import type { Json as Plain } from '../../refusals/case.ts'
import { type Json, PATCHES } from '../wire/server.ts'
import type { Endpoint } from './form.ts'

export interface Step {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly endpoint: Endpoint
  readonly code: number
  /** Sent in the form of the answer; made of what is `stored` before. */
  readonly body?: (live: Json) => Json
  /** Sent as it is. */
  readonly patch?: { readonly headers: Readonly<Record<string, string>>; readonly body: unknown }
  /** `again`: the same request in JSON, which changes nothing. `dry`: the same, before, as a dry run. `stored`: a read, after. */
  readonly witness: 'again' | 'dry' | 'stored'
  /** Where that is read. */
  readonly stored: string
}

export interface Subject {
  readonly kind: Kind
  /** With kind, apiVersion and a name. */
  readonly object: Plain
  /** Of the collection and of the object. */
  readonly collection: string
  readonly path: string
}

/** Custom resources know neither protobuf nor strategic merge patch. */
export function isCustom(kind: Kind): boolean {
  return schemaFor(kind) === undefined
}

/** `turn` makes that each life changes something. */
export function lifeOf(subject: Subject, turn: string): Step[] {
  const { kind, object, collection, path } = subject
  const can = (verb: string): boolean => kind.verbs.includes(verb)
  const { name } = object['metadata'] as { name: string }
  const one = `fieldSelector=metadata.name%3D${encodeURIComponent(name)}`
  const steps: Loose[] = [
    { verb: 'get', name: 'get what is not there', method: 'GET', path, code: 404, witness: 'again' },
    { verb: 'create', ...creation(subject) },
    { verb: 'get', name: 'get', method: 'GET', path, code: 200, witness: 'again' },
    { verb: 'list', name: 'list', method: 'GET', path: `${collection}?${one}`, code: 200, witness: 'again' },
    { verb: 'list', name: 'list nothing', method: 'GET', path: `${collection}?${NONE}`, code: 200, witness: 'again' },
    { verb: 'list', name: 'list wrongly', method: 'GET', path: `${collection}?${WRONG}`, code: 400, witness: 'again' },
    { ...WATCHING, name: 'watch', path: `${collection}?${WATCH}&${one}`, code: 200, witness: 'stored' },
    { ...WATCHING, name: 'watch wrongly', path: `${collection}?${WATCH}&${WRONG}`, code: 400, witness: 'again' },
    ...updates(subject, turn),
    ...patches(subject, turn),
    ...subresources(subject, turn),
    ...deletions(subject, one),
  ]
  return steps
    .filter(({ verb }) => can(verb))
    .map((step) => ({ stored: path, endpoint: endpointOf(step, collection), ...step }))
}

const NONE = 'labelSelector=nobody%3Dhere'
const WRONG = 'labelSelector=%21%21'
const WATCH = 'watch=1&resourceVersion=0'
const WATCHING = { verb: 'watch', method: 'GET', endpoint: 'watch' } as const

/** A step for the kinds that have the verb; fields that follow from the others are omitted. */
type Loose = Omit<Step, 'stored' | 'endpoint'> & Partial<Step> & { readonly verb: string }

function endpointOf({ path, method }: Loose, collection: string): Endpoint {
  const isCollection = path.split('?')[0] === collection
  return isCollection && method !== 'POST' ? 'list' : 'object'
}

/** The one step of kinds that only answer a question: a dry run, because some do something all the same. */
export function questionOf(subject: Subject): Step {
  const { collection: stored } = subject
  return { ...creation(subject), path: `${stored}?dryRun=All`, witness: 'again', endpoint: 'object', stored }
}

function creation({ object, collection }: Subject): Omit<Loose, 'verb'> {
  return { name: 'create', method: 'POST', path: collection, code: 201, body: () => object, witness: 'stored' }
}

function updates({ object, collection, path }: Subject, turn: string): Loose[] {
  const change = (live: Json): Json => withLabel(live, 'updated', turn)
  const late = (live: Json): Json => ({ ...live, metadata: { ...live.metadata, resourceVersion: '1' } })
  const nameless = (live: Json): Json => ({ ...live, metadata: { ...live.metadata, name: 'another' } })
  const update = { verb: 'update', method: 'PUT', path }
  return [
    { verb: 'create', name: 'create again', method: 'POST', path: collection, ...again(409, () => object) },
    { ...update, name: 'update', code: 200, body: change, witness: 'stored' },
    { ...update, name: 'update too late', ...again(409, late) },
    { ...update, name: 'update under another name', ...again(400, nameless) },
  ]
}

function again(code: number, body: (live: Json) => Json): Pick<Step, 'code' | 'body' | 'witness'> {
  return { code, body, witness: 'again' }
}

function patches({ kind, object, path }: Subject, turn: string): Loose[] {
  const { name } = object['metadata'] as { name: string }
  const typeMeta = { apiVersion: apiVersionOf(kind), kind: kind.kind }
  const labels = (key: string): object => ({ metadata: { labels: { [key]: turn } } })
  const pointer = [{ op: 'add', path: '/metadata/labels/json', value: turn }]
  const applied = { ...typeMeta, metadata: { name, labels: { applied: turn } } }
  const patch = (how: keyof typeof PATCHES, body: unknown, query = ''): Loose => ({
    verb: 'patch',
    name: `patch (${how})`,
    method: 'PATCH',
    path: `${path}${query}`,
    code: 200,
    patch: { headers: PATCHES[how], body },
    witness: 'stored',
  })
  return [
    patch('merge', labels('merged')),
    ...(isCustom(kind) ? [] : [patch('strategic', labels('strategic'))]),
    patch('json', pointer),
    patch('apply', applied, '?fieldManager=forms&force=true'),
    { ...patch('json', [{ op: 'test', path: '/kind', value: 'Nothing' }]), ...REFUSED_PATCH },
  ]
}

const REFUSED_PATCH = { name: 'patch that does not fit', code: 422, witness: 'again' } as const

/** Those whose body is the object itself or a Scale, written back as it is read. */
function subresources({ kind, path }: Subject, turn: string): Loose[] {
  return kind.subresources
    .filter((part) => part.verbs.includes('update') && [kind.kind, 'Scale'].includes(part.kind.kind))
    .flatMap(({ name, verbs }) => {
      const own = `${path}/${name}`
      const at = { path: own, code: 200, stored: verbs.includes('get') ? own : path }
      const patch = { headers: PATCHES.merge, body: { metadata: { annotations: { [name]: turn } } } }
      const steps: Loose[] = [
        { ...at, verb: 'get', name: `get ${name}`, method: 'GET', witness: 'again' },
        { ...at, verb: 'update', name: `update ${name}`, method: 'PUT', body: (live) => live, witness: 'stored' },
        { ...at, verb: 'patch', name: `patch ${name}`, method: 'PATCH', patch, witness: 'stored' },
      ]
      return steps.filter(({ verb }) => verbs.includes(verb))
    })
}

function deletions(subject: Subject, one: string): Loose[] {
  const { collection, path } = subject
  const uid = '00000000-0000-0000-0000-000000000000'
  const options = { kind: 'DeleteOptions', apiVersion: 'v1' }
  const wrong = (): Json => ({ ...options, preconditions: { uid } })
  const remove = { verb: 'delete', method: 'DELETE', path, code: 200 }
  const many = { verb: 'deletecollection', method: 'DELETE', code: 200, witness: 'dry' } as const
  return [
    { ...remove, name: 'delete another one', ...again(409, wrong) },
    { ...remove, name: 'delete', body: () => options, witness: 'dry' },
    { ...remove, name: 'delete what is not there', code: 404, witness: 'again' },
    { verb: 'deletecollection', ...creation(subject), name: 'create once more' },
    { ...many, name: 'delete nothing of many', path: `${collection}?${NONE}` },
    { ...many, name: 'delete many', path: `${collection}?${one}`, body: () => options },
    { ...many, name: 'delete many wrongly', path: `${collection}?${WRONG}`, code: 400 },
  ]
}

function withLabel(live: Json, key: string, value: string): Json {
  return { ...live, metadata: { ...live.metadata, labels: { ...live.metadata.labels, [key]: value } } }
}
