/**
 * Tests every kind, verb and response format. An object of each kind is created, changed and deleted once per format;
 * every response is compared with plain JSON from the same server. `WIRE_REFERENCE` runs the tests against upstream's
 * server.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import type { Kind } from '#apis/kinds.ts'
import { apiVersionOf } from '#meta/kind.ts'

import { collectionOf, complete, pathOf, removeObject } from '../../refusals/asking.ts'
import type { KindCases } from '../../refusals/case.ts'
import { everyCase } from '../../refusals/index.ts'
import { type Got, type Json, PROTOBUF, startWire, type Wire } from '../wire/server.ts'
import {
  acceptOf,
  compared,
  decodeAnswer,
  decodeEvents,
  encodeBody,
  type Event,
  expected,
  type Form,
  FORMS,
  JSON_FORM,
} from './form.ts'
import { isCustom, lifeOf, questionOf, type Step, type Subject } from './life.ts'

let wire: Wire
before(async () => {
  wire = await startWire()
  await wire.request('POST', '/api/v1/namespaces/default/serviceaccounts', { body: { metadata: { name: 'default' } } })
})
after(() => wire.stop())

/** The limit of repeated requests: parts of the server may write between the two responses that are compared. */
const MAX_TURNS = 20

interface Answer {
  readonly got: Got
  /** The decoded response, or the events of a watch. */
  readonly value: Json
}

async function ask(form: Form, step: Step): Promise<Answer> {
  const { method, path, endpoint, body, patch } = step
  const target = form.pretty === true ? `${path}${path.includes('?') ? '&' : '?'}pretty=true` : path
  const live = body === undefined || body.length === 0 ? {} : await read(step.stored)
  const got = await wire.request(method, target, {
    body: patch === undefined ? body && encodeBody(form, body(live)) : JSON.stringify(patch.body),
    headers: { accept: acceptOf(form, endpoint), 'content-type': form.media, ...patch?.headers },
    ...(endpoint === 'watch' && {
      enough: (text: string, bytes: Buffer) => text.includes('ADDED') && hasEvent(form, bytes),
    }),
  })
  const isWatch = endpoint === 'watch' && got.status === 200
  assert.equal(got.headers['content-type'], `${form.media}${isWatch && form.media === PROTOBUF ? ';stream=watch' : ''}`)
  return { got, value: isWatch ? decodeEvents(form, got.bytes) : decodeAnswer(form, got.bytes) }
}

async function read(path: string): Promise<Json> {
  return (await wire.request('GET', path, { headers: { accept: 'application/json' } })).json()
}

function hasEvent(form: Form, bytes: Buffer): boolean {
  return decodeEvents(form, bytes).length > 0
}

/** The expected code: some endpoints do not support some forms and reject them after the work. */
function codeOf({ as, media }: Form, { code, endpoint }: Step, witness: Json): number {
  if (code >= 300) return code
  if (endpoint === 'watch') return media === 'application/yaml' ? 406 : code
  return as?.kind === 'the wrong Partial' && witness.kind !== 'Status' ? 406 : code
}

/** The same, but nothing comes of it. The options of a DELETE come from its body, where it has one. */
function dry(step: Step): Step {
  const { path, body } = step
  if (body !== undefined) return { ...step, body: () => ({ ...body({}), dryRun: ['All'] }) }
  return { ...step, path: `${path}${path.includes('?') ? '&' : '?'}dryRun=All` }
}

/** The refusals by step, which are mostly equal in all forms. */
const refusals = new Map<string, Answer>()

async function witnessOf(step: Step): Promise<Answer | undefined> {
  const { witness, code } = step
  if (witness === 'stored') return undefined
  if (code < 400) return ask(JSON_FORM, witness === 'dry' ? dry(step) : step)
  const known = refusals.get(keyOf(step)) ?? (await ask(JSON_FORM, step))
  refusals.set(keyOf(step), known)
  return known
}

function keyOf({ name, method, path }: Step): string {
  return `${name} ${method} ${path}`
}

async function check(form: Form, step: Step): Promise<void> {
  for (let turn = 1; ; turn++) {
    const before = await witnessOf(step)
    const { got, value } = await ask(form, step)
    const witness = before?.value ?? (await read(step.stored))
    try {
      assert.equal(got.status, codeOf(form, step, witness), got.text)
      if (before !== undefined) assert.equal(before.got.status, step.code, before.got.text)
      if (got.status !== step.code || (step.method === 'POST' && isWrittenByServer(witness, value))) return
      compare(form, step, value, witness)
      return
    } catch (error) {
      if (turn === MAX_TURNS || !mayRepeat(step)) throw error
      refusals.delete(keyOf(step))
    }
  }
}

/** True if the step can be repeated with the same result. */
function mayRepeat({ witness, method }: Step): boolean {
  return witness === 'again' || method === 'GET' || method === 'PUT' || method === 'PATCH'
}

/** Some kinds get a status of the server's as soon as they are there: then it is known only what they were before. */
const WRITTEN_BY_SERVER = new Set([
  'FlowSchema',
  'PriorityLevelConfiguration',
  'APIService',
  'CustomResourceDefinition',
])

function isWrittenByServer({ kind, metadata }: Json, answer: Json): boolean {
  return WRITTEN_BY_SERVER.has(kind as string) && !JSON.stringify(answer).includes(`"${metadata?.resourceVersion}"`)
}

function compare(form: Form, step: Step, value: Json, witness: Json): void {
  if (step.endpoint !== 'watch' || step.code !== 200) {
    assert.deepEqual(settled(step, compared(value)), settled(step, expected(form, witness)))
    return
  }
  const [event, ...more] = value as Event[]
  assert.deepEqual([event?.type, more], ['ADDED', []])
  assert.deepEqual(compared(event?.object), expected(form, witness))
}

/** Removes the fields that a dry run cannot know: times and the resourceVersion. */
function settled({ witness, endpoint }: Step, answer: Json): Json {
  if (witness !== 'dry') return answer
  if (endpoint !== 'object') return answer.metadata?.resourceVersion === undefined ? answer : atAnyVersion(answer)
  const names = new Set(['resourceVersion', 'deletionTimestamp'])
  return JSON.parse(JSON.stringify(answer, (name, value: unknown) => (names.has(name) ? undefined : value)))
}

/** Others write meanwhile (leases of servers, say), and a list tells how far the whole store has come. */
function atAnyVersion(list: Json): Json {
  return { ...list, metadata: { ...list.metadata, resourceVersion: 'any' } }
}

function subjectOf({ kind, valid }: KindCases): Subject {
  const object = complete(kind, valid)
  return { kind, object, collection: collectionOf(kind, object), path: isQuestion(kind) ? '' : pathOf(kind, object) }
}

/** True for kinds that are never stored, such as reviews. */
function isQuestion({ verbs }: Kind): boolean {
  return !verbs.includes('get')
}

async function live(subject: Subject, form: Form): Promise<void> {
  const { kind, path } = subject
  const steps = isQuestion(kind) ? [questionOf(subject)] : lifeOf(subject, form.name.replaceAll(' ', '-'))
  for (const step of steps) {
    try {
      await check(form, step)
    } catch (error) {
      assert.fail(`${step.name}, as ${form.name}: ${step.method} ${step.path}\n${(error as Error).message}`)
    }
    // An object with finalizers must be gone before the next form.
    if (step.method === 'DELETE' && step.code === 200 && !isQuestion(kind)) await removeObject(send, kind, path)
  }
}

async function send(method: string, path: string, body?: unknown): Promise<{ code: number; body: Json }> {
  const headers = { 'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json' }
  const got = await wire.request(method, path, { body, headers })
  return { code: got.status, body: got.json() }
}

async function prepare({ given = [] }: KindCases): Promise<void> {
  for (const { kind, object } of given) await send('POST', collectionOf(kind, object), complete(kind, object))
}

describe('all verbs and media types of every kind have the same content as in JSON', () => {
  for (const cases of everyCase) {
    it(`for ${apiVersionOf(cases.kind)} ${cases.kind.kind}`, async () => {
      await prepare(cases)
      const subject = subjectOf(cases)
      if (!isQuestion(cases.kind)) await removeObject(send, cases.kind, subject.path)
      // Answers that are not kept have no columns.
      const forms = FORMS.filter(
        ({ as, media }) =>
          (as?.kind !== 'Table' || !isQuestion(cases.kind)) && (media !== PROTOBUF || !isCustom(cases.kind)),
      )
      for (const form of [JSON_FORM, ...forms]) await live(subject, form)
    })
  }

  it('have a case for every served kind', async () => {
    const known = new Set(everyCase.map(({ kind }) => `${apiVersionOf(kind)} ${kind.plural}`))
    const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
    const lists = await Promise.all(['/api', '/apis'].map((path) => wire.request('GET', path, { headers: { accept } })))
    const served = lists
      .flatMap((got) => got.json().items as Json[])
      .flatMap(({ metadata, versions }) =>
        versions.flatMap(({ version, resources }: Json) =>
          resources.map(({ resource }: Json) => `${metadata.name ? `${metadata.name}/` : ''}${version} ${resource}`),
        ),
      )
    assert.deepEqual(
      served.filter((name) => !known.has(name)),
      ['v1 componentstatuses'],
    )
  })
})
