/** Tests CustomResourceDefinitions from their creation to the deletion of their last object. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import {
  conditionOf,
  Custom,
  definition,
  DEFINITIONS,
  type Json,
  MERGE,
  object,
  saysOf,
  specSchema,
} from './custom-kit.ts'

let custom: Custom
before(async () => {
  custom = await Custom.start()
})
after(() => custom.plane.stop())

const BASE = (plural: string, version = 'v1'): string => `/apis/ex.io/${version}/namespaces/default/${plural}`

describe('a CustomResourceDefinition', () => {
  it('has no conditions on creation, and then reports each step', async () => {
    const made = await custom.must('POST', DEFINITIONS, definition('Life'))
    assert.deepEqual(made.status, {
      conditions: null,
      acceptedNames: { plural: '', kind: '' },
      storedVersions: ['v1'],
    })
    assert.deepEqual(made.spec.conversion, { strategy: 'None' })
    assert.equal(made.metadata.generation, 1)
    const there = await custom.until('lifes.ex.io', (one) => conditionOf(one, 'Established')?.status === 'True')
    assert.deepEqual(saysOf(there), [
      'NamesAccepted=True NoConflicts: no conflicts found',
      'Established=True InitialNamesAccepted: the initial names have been accepted',
    ])
    assert.deepEqual(there.status.acceptedNames, {
      plural: 'lifes',
      singular: 'life',
      kind: 'Life',
      listKind: 'LifeList',
    })
    const written = await custom.must('POST', BASE('lifes'), object('Life', 'a', { spec: { x: 1 } }))
    assert.deepEqual([written.spec, written.metadata.generation], [{ x: 1 }, 1])
    assert.deepEqual(await custom.must('GET', `${BASE('lifes')}/a`), written)
  })

  it('waits for names that another definition has, and gets them when they are free', async () => {
    await custom.define(definition('First', { names: { shortNames: ['ff'] } }))
    const body = definition('Second', { names: { kind: 'First', listKind: 'FirstList', singular: 'first' } })
    await custom.must('POST', DEFINITIONS, body)
    const waiting = await custom.until('seconds.ex.io', ({ status }) => status.conditions !== null)
    assert.deepEqual(saysOf(waiting), [
      'NamesAccepted=False ListKindConflict: "FirstList" is already in use',
      'Established=False NotAccepted: not all names are accepted',
    ])
    assert.deepEqual(waiting.status.acceptedNames, { plural: 'seconds', kind: '' })
    assert.equal(await custom.refused('GET', BASE('seconds')), '404 404 page not found\n')
    await custom.must('DELETE', `${DEFINITIONS}/firsts.ex.io`)
    await custom.until('seconds.ex.io', (one) => conditionOf(one, 'Established')?.status === 'True')
    assert.deepEqual((await custom.must('GET', BASE('seconds'))).items, [])
  })

  it('in a protected group reports whether its API was approved', async () => {
    const protectedOne = (kind: string, value: string): Json =>
      definition(kind, {
        group: 'ex.k8s.io',
        metadata: { annotations: { 'api-approved.kubernetes.io': value } },
      })
    const bypassed = await custom.define(protectedOne('Bypassed', 'unapproved, x'))
    assert.equal(
      saysOf(bypassed)[0],
      'KubernetesAPIApprovalPolicyConformant=False UnapprovedAnnotation: not approved: "unapproved, x"',
    )
    const approved = await custom.define(protectedOne('Approved', 'https://example.com/1'))
    assert.equal(
      saysOf(approved)[0],
      'KubernetesAPIApprovalPolicyConformant=True ApprovedAnnotation: approved in https://example.com/1',
    )
  })

  it('has an APIService, which is recreated if needed and deleted with it', async () => {
    const path = '/apis/apiregistration.k8s.io/v1/apiservices/v1.heal.io'
    await custom.define(definition('Heal', { group: 'heal.io' }))
    const made = await custom.must('GET', path)
    assert.deepEqual(made.spec, { group: 'heal.io', version: 'v1', groupPriorityMinimum: 1000, versionPriority: 100 })
    assert.deepEqual(made.metadata.labels, { 'kube-aggregator.kubernetes.io/automanaged': 'true' })
    await custom.must('PATCH', path, { spec: { groupPriorityMinimum: 7 } }, MERGE)
    await custom.eventually(
      () => custom.must('GET', path),
      ({ spec }) => spec.groupPriorityMinimum === 1000,
    )
    await custom.must('DELETE', path)
    await custom.eventually(
      () => custom.ask('GET', path),
      ({ status }) => status === 200,
    )
    await custom.must('DELETE', `${DEFINITIONS}/heals.heal.io`)
    await custom.eventually(
      () => custom.ask('GET', path),
      ({ status }) => status === 404,
    )
  })

  it('enforces a changed schema at once and ends watches; changed labels end no watch', async () => {
    const string = specSchema({ a: { type: 'string' } })
    await custom.define(definition('Changing', { versions: [{ name: 'v1', schema: string }] }))
    await custom.must('POST', BASE('changings'), object('Changing', 'x', { spec: { a: 'text' } }))
    const watching = await custom.watch(`${BASE('changings')}?watch=true&resourceVersion=0`)
    const events = watching.setEncoding('utf8')[Symbol.asyncIterator]()
    assert.match((await events.next()).value as string, /"type":"ADDED"/)
    await custom.must('PATCH', `${DEFINITIONS}/changings.ex.io`, { metadata: { labels: { a: 'b' } } }, MERGE)
    await custom.must('PATCH', `${BASE('changings')}/x`, { metadata: { labels: { c: 'd' } } }, MERGE)
    assert.match((await events.next()).value as string, /"type":"MODIFIED"/)
    await custom.redefine('changings.ex.io', (spec) => {
      spec.versions[0].schema = specSchema({ a: { type: 'integer' } })
    })
    const refusal = await custom.eventually(
      () => custom.ask('POST', `${BASE('changings')}?dryRun=All`, object('Changing', 'y', { spec: { a: 'text' } })),
      // Upstream takes a moment.
      ({ status }) => status !== 201 || process.env['WIRE_REFERENCE'] === undefined,
    )
    assert.match(refusal.text, /spec.a in body must be of type integer: \\"string\\"/)
    const rest: string[] = []
    for await (const piece of { [Symbol.asyncIterator]: () => events }) rest.push(piece as string)
    assert.deepEqual(rest, [])
  })

  it('is deleted after its objects, which watchers receive, and refuses new ones meanwhile', async () => {
    await custom.define(definition('Del'))
    const held = object('Del', 'held')
    held.metadata.finalizers = ['ex.io/wait']
    await custom.must('POST', BASE('dels'), held)
    await custom.must('POST', BASE('dels'), object('Del', 'free'))
    const watching = await custom.watch(`${BASE('dels')}?watch=true`)
    const deleted = await custom.must('DELETE', `${DEFINITIONS}/dels.ex.io`)
    assert.deepEqual(deleted.metadata.finalizers, ['customresourcecleanup.apiextensions.k8s.io'])
    assert.equal(
      saysOf(deleted).at(-1),
      'Terminating=True InstanceDeletionPending: CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
    )
    const going = await custom.until(
      'dels.ex.io',
      (one) => conditionOf(one, 'Terminating')?.reason === 'InstanceDeletionInProgress',
    )
    assert.equal(conditionOf(going, 'Terminating').message, 'CustomResource deletion is in progress')
    assert.equal(
      await custom.refused('POST', BASE('dels'), object('Del', 'c')),
      '403 dels.ex.io "c" is forbidden: create not allowed while custom resource definition is terminating',
    )
    const left = await custom.eventually(
      () => custom.must('GET', BASE('dels')),
      ({ items }) => items.length === 1,
    )
    const [{ metadata }] = left.items
    assert.deepEqual([metadata.deletionGracePeriodSeconds, metadata.generation], [0, 2])
    const { resources } = await custom.must('GET', '/apis/ex.io/v1')
    const dels = resources.find(({ name }: Json) => name === 'dels')
    assert.deepEqual(dels.verbs, ['delete', 'deletecollection', 'get', 'list', 'watch'])
    await custom.must('PATCH', `${BASE('dels')}/held`, { metadata: { finalizers: null } }, MERGE)
    await custom.gone('dels.ex.io')
    const events: string[] = []
    for await (const piece of watching.setEncoding('utf8')) events.push(...(piece as string).trim().split('\n'))
    const names = events.map((one) => JSON.parse(one)).filter(({ type }) => type === 'DELETED')
    assert.deepEqual(new Set(names.map((one) => one.object.metadata.name)), new Set(['free', 'held']))
    assert.equal(await custom.refused('GET', BASE('dels')), '404 404 page not found\n')
  })

  it('refuses new objects until it is gone, also when another finalizer keeps it', async () => {
    // Upstream accepts objects again when the condition Terminating has turned false; nothing deletes them later.
    if (process.env['WIRE_REFERENCE'] !== undefined) return
    const kept = definition('Keep')
    kept.metadata.finalizers = ['ex.io/wait']
    await custom.define(kept)
    await custom.must('DELETE', `${DEFINITIONS}/keeps.ex.io`)
    await custom.until('keeps.ex.io', (one) => conditionOf(one, 'Terminating')?.status === 'False')
    assert.equal(
      await custom.refused('POST', BASE('keeps'), object('Keep', 'c')),
      '403 keeps.ex.io "c" is forbidden: create not allowed while custom resource definition is terminating',
    )
    await custom.must('PATCH', `${DEFINITIONS}/keeps.ex.io`, { metadata: { finalizers: null } }, MERGE)
    await custom.gone('keeps.ex.io')
  })
})
