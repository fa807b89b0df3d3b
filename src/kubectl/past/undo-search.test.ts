import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { ServedKind } from '#client/discovery.ts'
import { Collector } from '#kits/cmd/run-program.ts'
import { alreadyExistsError, forbiddenError, notFoundError } from '#meta/status-errors.ts'

import type { AnyObject, Rest, Target } from '../session/rest.ts'
import type { Session } from '../session/session.ts'
import { carryOut, planLine } from './undo-actions.ts'
import { planNamespace, planObject } from './undo-search.ts'

function kind(name: string, plural: string, namespaced = true): ServedKind {
  const verbs = ['create', 'get', 'list']
  return { kind: name, plural, group: '', version: 'v1', namespaced, isPreferred: true, verbs } as unknown as ServedKind
}

const KINDS = [kind('Namespace', 'namespaces', false), kind('ConfigMap', 'configmaps'), kind('Pod', 'pods')]

type State = Readonly<Record<string, readonly AnyObject[]>>

/** A session whose objects are those of `states`, by moment. */
function sessionAt(states: Readonly<Record<string, State>>, moment = 'now'): Session {
  const state = states[moment] ?? {}
  const get = async ({ kind: { plural }, name }: Target): Promise<AnyObject> => {
    const objects = state[plural] ?? []
    if (name === undefined) return { metadata: {}, items: objects }
    const found = objects.find(({ metadata }) => metadata.name === name)
    if (found === undefined) throw notFoundError({ group: '', resource: plural }, name)
    return found
  }
  const found = (test: (one: ServedKind) => boolean): ServedKind => KINDS.find(test) as ServedKind
  return {
    at: (other: string) => sessionAt(states, other),
    rest: async () => ({
      get,
      json: () => Promise.reject(forbiddenError({ group: '', resource: 'configmaps' }, 'a', 'no past')),
    }),
    mapper: async () => ({
      kinds: async () => KINDS,
      ofKind: async (_group: string, name: string) => found((one) => one.kind === name),
      named: async (name: string) => found((one) => one.plural === name),
    }),
  } as unknown as Session
}

function object(name: string, fields: object = {}, metadata: object = {}): AnyObject {
  return { metadata: { name, resourceVersion: '1', ...metadata }, ...fields }
}

const MOMENT = { text: '2026-11-18T03:00:00Z', timeMs: Date.parse('2026-11-18T03:00:00Z') }
const namespace = 'shop'
const shop = { namespaces: [object('shop')] }

describe('planNamespace', () => {
  const linesOf = async (before: State, now: State): Promise<string[]> => {
    const session = sessionAt({ now, [MOMENT.text]: before })
    return (await planNamespace({ session, namespace, moment: MOMENT })).map(planLine)
  }

  it('has one line for each object of a user that differs', async () => {
    const before = { ...shop, configmaps: [object('a', { data: { x: '1' } }), object('b')], pods: [object('web')] }
    const now = { ...shop, configmaps: [object('a', { data: { x: '2' } }), object('c')] }
    assert.deepEqual(await linesOf(before, now), [
      'change  configmap/a: data.x',
      'create  configmap/b: new uid',
      'delete  configmap/c',
    ])
  })

  it('creates the namespace first if it is gone', async () => {
    const lines = await linesOf({ ...shop, configmaps: [object('a'), object('kube-root-ca.crt')] }, {})
    assert.deepEqual(lines, ['create  namespace/shop: new uid', 'create  configmap/a: new uid'])
  })

  it('refuses a namespace that is being deleted or never was', async () => {
    const deleted = { namespaces: [object('shop', {}, { deletionTimestamp: 't' })] }
    await assert.rejects(linesOf(shop, deleted), /namespace "shop" is being deleted: try again when it is gone/)
    await assert.rejects(linesOf({}, {}), /namespace "shop" does not exist, and did not exist then/)
  })
})

describe('planObject of a user who may not list changes', () => {
  const managed = (manager: string, time: string): object => ({ manager, time, fieldsV1: { 'f:data': { 'f:x': {} } } })
  const now = object(
    'a',
    { data: { x: '3' } },
    { managedFields: [managed('ann', '2026-11-18T03:00:01Z'), managed('bob', '2026-11-18T03:00:09Z')] },
  )

  it('finds the last change that leads to another state', async () => {
    const session = sessionAt({
      now: { configmaps: [now] },
      '2026-11-18T03:00:08Z': { configmaps: [object('a', { data: { x: '3' } })] },
      '2026-11-18T03:00:00Z': { configmaps: [object('a', { data: { x: '1' } })] },
    })
    const planned = await planObject({ session, namespace }, { type: 'configmaps', name: 'a' })
    assert.deepEqual(planned?.step, { action: 'refuse', note: 'bob changed it at 2026-11-18T03:00:09Z (data.x)' })
  })

  it('undoes the last change', async () => {
    const states = {
      now: { configmaps: [now] },
      '2026-11-18T03:00:08Z': { configmaps: [object('a', { data: { x: '2' } })] },
    }
    const planned = await planObject({ session: sessionAt(states), namespace }, { type: 'configmaps', name: 'a' })
    assert.equal(planned === undefined ? '' : planLine(planned), 'change  configmap/a: data.x')
  })

  it('says why there is nothing to undo', async () => {
    const search = { session: sessionAt({ now: { configmaps: [now] } }), namespace }
    const rows = [
      ['configmaps', 'a', {}, /"a" has no change in the history: give a moment/],
      ['configmaps', 'none', {}, /"none" does not exist: give a moment/],
      ['configmaps', 'none', { moment: MOMENT }, /"none" does not exist, and did not exist then/],
      ['configmaps', 'a', { by: 'carl' }, /has no change by carl in the history/],
      ['configmaps', 'a', { by: 'ann', moment: { text: 'rv:8' } }, /--by needs a time instead of rv:8/],
      ['pods', 'web', {}, /pods are not undone/],
    ] as const
    for (const [type, name, more, message] of rows) {
      await assert.rejects(planObject({ ...search, ...more }, { type, name }), message)
    }
  })
})

describe('carryOut', () => {
  it('writes namespaces first and deletes last, and continues after a failure', async () => {
    const calls: string[] = []
    const rest = {
      create: async ({ kind: { plural } }: Target, { metadata }: AnyObject) => {
        calls.push(`create ${plural} ${metadata.name}`)
        if (metadata.name === 'taken') throw alreadyExistsError({ group: '', resource: plural }, 'taken')
      },
      delete: async ({ name }: Target, options: object) => calls.push(`delete ${name} ${JSON.stringify(options)}`),
    } as unknown as Rest
    const [, maps] = KINDS as [ServedKind, ServedKind]
    const plan = [
      {
        kind: maps,
        namespace,
        name: 'new',
        step: { action: 'delete', note: '', object: object('new', {}, { uid: 'u' }) },
      },
      { kind: maps, namespace, name: 'taken', step: { action: 'create', note: '', object: object('taken') } },
      {
        kind: KINDS[0] as ServedKind,
        namespace: '',
        name: 'shop',
        step: { action: 'create', note: '', object: object('shop') },
      },
    ] as const
    const [stdout, stderr] = [new Collector(), new Collector()]
    assert.equal(await carryOut(rest, plan, { stdout, stderr }), 1)
    assert.deepEqual(calls, [
      'create namespaces shop',
      'create configmaps taken',
      'delete new {"preconditions":{"uid":"u","resourceVersion":"1"}}',
    ])
    assert.equal(stdout.text, 'namespace/shop created\nconfigmap/new deleted\n')
    assert.match(stderr.text, /^error: configmap\/taken: .*already exists/)
  })
})
