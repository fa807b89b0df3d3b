/** Sends refusal cases to our server or the reference, returns the responses, and deletes every created object. */
import type { CustomResourceDefinitionSpec } from '#apis/apiextensions/v1.ts'
import { ServiceAccounts } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'

import { type Given, type Json, type KindCases, type Refused, type Trial, withChanges } from './case.ts'

export interface Answer {
  readonly code: number
  readonly body: Json
}

export interface Asker {
  /** Whether the valid object is let in: the answer to its creation. */
  askValid(cases: KindCases): Promise<Answer>
  ask(cases: KindCases, trial: Trial): Promise<Answer>
  /** Removes what it stored last. */
  close(): Promise<void>
}

export interface AskerOptions {
  readonly url: string
  readonly token: string
  readonly clock: Clock
}

/** Well above the largest object. */
const ANSWER_LIMIT_BYTES = 8 * 1024 * 1024

/** The limit of repetitions of a request that conflicts with writes of the server itself. */
const MAX_TURNS = 50

/** A controller manager makes it; where none runs, pods would be refused for want of it. */
const account: Given = { kind: ServiceAccounts, object: { metadata: { name: 'default' } } }

export type Send = (method: string, path: string, body?: unknown) => Promise<Answer>

export function createAsker({ url, token, clock }: AskerOptions): Asker {
  const client = createHttpClient({ clock, tls: { insecure: true } })
  const send: Send = async (method, path, body) => {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
    const answer = await client.request({
      method,
      url: url + path,
      headers: { authorization: `Bearer ${token}`, 'content-type': type },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    return { code: answer.status, body: bodyOf(await answer.text(ANSWER_LIMIT_BYTES)) }
  }
  const prepare = createPreparation(send, clock)
  const stage = createStage(send)
  return {
    async askValid({ kind, valid, given }) {
      await prepare(given)
      await stage.clear()
      return send('POST', `${collectionOf(kind, valid)}?dryRun=All`, complete(kind, valid))
    },
    async ask(cases, trial) {
      await prepare(cases.given)
      const { kind, valid } = cases
      if (trial.on !== undefined && trial.on !== 'create') {
        await stage.set(cases, trial)
        return askStored(send, pathOf(kind, valid), trial, '?dryRun=All')
      }
      await stage.clear()
      const sent = withChanges(complete(kind, valid), trial.set)
      return send('POST', `${collectionOf(kind, sent)}?dryRun=All`, trial.body ?? sent)
    },
    async close() {
      await stage.clear()
      client.close()
    },
  }
}

/** Stores what cases need, once. */
function createPreparation(send: Send, clock: Clock): (given?: readonly Given[]) => Promise<void> {
  const done = new Set<Given>()
  return async (given = []) => {
    for (const one of [account, ...given]) {
      if (done.has(one)) continue
      const { code, body } = await send('POST', collectionOf(one.kind, one.object), complete(one.kind, one.object))
      if (code !== 201 && code !== 409) throw new Error(`Not stored: ${JSON.stringify(body)}`)
      if (one.kind.kind === 'CustomResourceDefinition') await untilServed(send, one.object, clock)
      done.add(one)
    }
  }
}

const SERVED_POLL_MS = 50

/** A definition is served some moments after it is there. */
async function untilServed(send: Send, definition: Json, clock: Clock): Promise<void> {
  const { group, names, versions } = definition['spec'] as CustomResourceDefinitionSpec
  const path = `/apis/${group}/${versions[0]?.name}/${names.plural}`
  for (let turns = 0; turns < 20 * MAX_TURNS; turns++) {
    if ((await send('GET', path)).code === 200) return
    await sleep(clock, SERVED_POLL_MS)
  }
  throw new Error(`${path} is not served`)
}

/** Requests for unknown paths get plain text. */
function bodyOf(text: string): Json {
  return (text.startsWith('{') ? JSON.parse(text) : { message: text }) as Json
}

interface Stage {
  /** The stored object is there as the case wants it. Dry runs leave it so, so that the next case may find it. */
  set(cases: KindCases, trial: Trial): Promise<void>
  clear(): Promise<void>
}

function createStage(send: Send): Stage {
  let held: { readonly kind: Kind; readonly path: string; readonly key: string } | undefined
  const clear = async (): Promise<void> => {
    if (held !== undefined) await removeObject(send, held.kind, held.path)
    held = undefined
  }
  return {
    clear,
    async set({ kind, valid }, { stored = {}, since = [] }) {
      const path = pathOf(kind, valid)
      const key = JSON.stringify([stored, since])
      if (held?.path === path && held.key === key) return
      await clear()
      // An earlier run may have left the object.
      await removeObject(send, kind, path)
      const before = withChanges(complete(kind, valid), stored)
      const kept = await send('POST', collectionOf(kind, before), before)
      if (kept.code !== 201) throw new Error(`Not stored: ${JSON.stringify(kept.body)}`)
      held = { kind, path, key }
      for (const step of since) {
        const { code, body } = await askStored(send, path, step, '')
        if (code !== 200) throw new Error(`Not brought there: ${JSON.stringify(body)}`)
      }
    },
  }
}

type Step = Pick<Trial, 'on' | 'set' | 'body'>

async function askStored(send: Send, path: string, step: Step, query: string): Promise<Answer> {
  const { on = 'update', set = {}, body } = step
  const [verb, subresource] = on.split(' ')
  const place = subresource === undefined ? path : `${path}/${subresource}`
  for (let turns = 1; ; turns++) {
    const kept = await send('GET', path)
    const sent = withChanges(kept.body, { '/metadata/managedFields': undefined, ...set })
    const answer = await send(verb === 'create' ? 'POST' : 'PUT', `${place}${query}`, body ?? sent)
    // Controllers inside the server write status meanwhile; only a version of our own making may be in conflict.
    if (!isModified(answer) || '/metadata/resourceVersion' in set || turns === MAX_TURNS) return answer
  }
}

function isModified({ code, body }: Answer): boolean {
  return code === 409 && String(body['message']).includes('the object has been modified')
}

/** Until it has gone: some finalizers come back, some are emptied by controllers inside the server. */
export async function removeObject(send: Send, kind: Kind, path: string): Promise<void> {
  for (let turns = 0; turns < MAX_TURNS; turns++) {
    const { code, body } = await send('GET', path)
    if (code === 404) return
    await send('DELETE', path, { gracePeriodSeconds: 0, propagationPolicy: 'Background' })
    await send('PATCH', path, { metadata: { finalizers: null } })
    // No namespace controller runs, so this removes the finalizer.
    if (kind.kind === 'Namespace') await send('PUT', `${path}/finalize`, withChanges(body, { '/spec/finalizers': [] }))
  }
  throw new Error(`${path} does not go away`)
}

export function complete({ group, version, kind }: Kind, object: Json): Json {
  return { apiVersion: group === '' ? version : `${group}/${version}`, kind, ...object }
}

export function collectionOf({ group, version, plural, namespaced }: Kind, { metadata }: Json): string {
  const { namespace = 'default' } = (metadata ?? {}) as { namespace?: string }
  const prefix = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  return namespaced ? `${prefix}/namespaces/${encodeURIComponent(namespace)}/${plural}` : `${prefix}/${plural}`
}

export function pathOf(kind: Kind, object: Json): string {
  const { name } = object['metadata'] as { name: string }
  return `${collectionOf(kind, object)}/${encodeURIComponent(name)}`
}

/** Values that differ between servers. */
const MASKS: readonly [RegExp, string][] = [
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<uid>'],
  [/20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z| \+0000 UTC)/g, '<time>'],
  [/\b(generated-)[a-z0-9]{5}\b/gi, '$1<random>'],
  [/kube-api-access-[a-z0-9]{5}/g, 'kube-api-access-<random>'],
  [/\\?"resourceVersion\\?":\\?"\d+\\?"/g, '<resourceVersion>'],
]

/** The refusal in an answer, masked. Throws when it is none. */
export function refusalIn({ code, body }: Answer): Refused {
  if (code < 400) throw new Error(`Let pass with ${code}: ${JSON.stringify(body)}`)
  const { reason, message, details } = body
  const text = JSON.stringify({ code: body['code'], reason, message, details })
  return JSON.parse(MASKS.reduce((at, [what, by]) => at.replace(what, by), text)) as Refused
}
