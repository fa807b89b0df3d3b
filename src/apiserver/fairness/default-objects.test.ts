import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type APIService, APIServices } from '#apis/apiregistration/v1.ts'
import {
  type FlowSchema,
  FlowSchemas,
  type PriorityLevelConfiguration,
  PriorityLevelConfigurations,
} from '#apis/flowcontrol/v1.ts'
import type { KubeObject } from '#meta/object.ts'

import { ensureApiServices, localApiServices } from '../bootstrap/apiservices.ts'
import { defineResource } from '../registry/resource.ts'
import { createServers } from '../registry/servers.fixture.ts'
import {
  ensureFlowControl,
  keepFlowControl,
  mandatoryFlowSchemas,
  mandatoryPriorityLevels,
  planRefresh,
  suggestedFlowSchemas,
  suggestedPriorityLevels,
} from './default-objects.ts'

const own = [FlowSchemas, PriorityLevelConfigurations, APIServices].map((kind) =>
  defineResource<KubeObject>({ kind, nameRule: () => [], generation: 'spec' }),
)

const namesOf = (objects: readonly { readonly metadata: { readonly name?: string } }[]): string[] =>
  objects.map(({ metadata }) => metadata.name ?? '').sort()

describe('default flow control objects', () => {
  it('are eleven flow schemas and the eight priority levels they reference', () => {
    const levels = namesOf([...mandatoryPriorityLevels, ...suggestedPriorityLevels])
    const schemas = [...mandatoryFlowSchemas, ...suggestedFlowSchemas]
    assert.deepEqual(levels, [
      'catch-all',
      'exempt',
      'global-default',
      'leader-election',
      'node-high',
      'system',
      'workload-high',
      'workload-low',
    ])
    assert.equal(schemas.length, 11)
    assert.deepEqual([...new Set(schemas.map(({ spec }) => spec.priorityLevelConfiguration.name))].sort(), levels)
  })

  it("equal upstream's in a sample FlowSchema and PriorityLevelConfiguration", () => {
    assert.deepEqual(suggestedPriorityLevels.find(({ metadata }) => metadata.name === 'leader-election')?.spec, {
      type: 'Limited',
      limited: {
        nominalConcurrencyShares: 10,
        limitResponse: { type: 'Queue', queuing: { queues: 16, handSize: 4, queueLengthLimit: 50 } },
        lendablePercent: 0,
      },
    })
    assert.deepEqual(suggestedFlowSchemas.find(({ metadata }) => metadata.name === 'system-node-high')?.spec, {
      priorityLevelConfiguration: { name: 'node-high' },
      matchingPrecedence: 400,
      distinguisherMethod: { type: 'ByUser' },
      rules: [
        {
          subjects: [{ kind: 'Group', group: { name: 'system:nodes' } }],
          resourceRules: [
            {
              verbs: ['*'],
              apiGroups: [''],
              resources: ['nodes', 'nodes/status'],
              namespaces: ['*'],
              clusterScope: true,
            },
            { verbs: ['*'], apiGroups: ['coordination.k8s.io'], resources: ['leases'], namespaces: ['*'] },
          ],
        },
      ],
    })
  })

  it('are created once, and those of an older release are removed', async () => {
    await using servers = createServers()
    const registry = await servers.open([], { own })
    const old = { ...suggestedFlowSchemas[0]!, kind: 'FlowSchema', apiVersion: 'flowcontrol.apiserver.k8s.io/v1' }
    const named = (name: string, annotations: Record<string, string>): FlowSchema => ({
      ...old,
      metadata: { name, annotations },
    })
    await registry.writer.create(FlowSchemas, named('gone', { 'apf.kubernetes.io/autoupdate-spec': 'true' }))
    await registry.writer.create(FlowSchemas, named('mine', {}))
    await ensureFlowControl(registry)
    await ensureFlowControl(registry)
    const schemas = namesOf(await registry.list(FlowSchemas, ''))
    assert.deepEqual(
      schemas,
      namesOf([...mandatoryFlowSchemas, ...suggestedFlowSchemas, { metadata: { name: 'mine' } }]),
    )
    const levels = await registry.list(PriorityLevelConfigurations, '')
    assert.equal(levels.length, 8)
    assert.ok(levels.every(({ metadata }) => metadata.generation === 1))
  })
})

describe('maintenance of default flow control objects', () => {
  it('restores deleted objects soon and changed ones within a minute, unless users disabled that', async () => {
    await using servers = createServers()
    const registry = await servers.open([], { own })
    await ensureFlowControl(registry)
    const kept = keepFlowControl(registry, (error) => assert.fail(error as Error))
    const precedence = async (name: string): Promise<number | undefined> =>
      (await registry.get(FlowSchemas, '', name))?.spec.matchingPrecedence
    await registry.writer.delete(FlowSchemas, { name: 'catch-all' })
    await registry.writer.delete(PriorityLevelConfigurations, { name: 'system' })
    assert.equal(await precedence('catch-all'), undefined)
    await servers.clock.advance(1000)
    assert.equal(await precedence('catch-all'), 10_000)
    assert.ok(await registry.get(PriorityLevelConfigurations, '', 'system'))
    const change = (live: FlowSchema): FlowSchema => ({ ...live, spec: { ...live.spec, matchingPrecedence: 77 } })
    await registry.writer.update(FlowSchemas, { name: 'probes' }, change)
    await registry.writer.update(FlowSchemas, { name: 'system-nodes' }, (live) => ({
      ...change(live),
      metadata: { ...live.metadata, annotations: { 'apf.kubernetes.io/autoupdate-spec': 'false' } },
    }))
    await servers.clock.advance(60_000)
    assert.deepEqual([await precedence('probes'), await precedence('system-nodes')], [2, 77])
    const { metadata } = (await registry.get(FlowSchemas, '', 'probes')) ?? {}
    const managers = metadata?.managedFields?.map(({ manager, operation }) => `${manager} ${operation}`)
    assert.deepEqual(managers, ['api-priority-and-fairness-config-producer-v1 Update'])
    await kept.stop()
  })
})

describe('planRefresh() of a default flow control object', () => {
  const wanted = suggestedFlowSchemas[0]!
  const at = (annotations: Record<string, string>, generation: number, precedence: number): FlowSchema => ({
    kind: 'FlowSchema',
    apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
    metadata: { name: wanted.metadata.name ?? '', annotations, generation },
    spec: { ...wanted.spec, matchingPrecedence: precedence },
    status: {},
  })
  const AUTO = 'apf.kubernetes.io/autoupdate-spec'
  const outcome = (object: FlowSchema, always = false): unknown => {
    const planned = planRefresh(object, wanted, always)
    return planned === undefined ? 'stays' : [planned.spec.matchingPrecedence, planned.metadata.annotations?.[AUTO]]
  }

  it('follows the autoupdate-spec annotation, or without it updates only specs that were never changed', () => {
    const same = wanted.spec.matchingPrecedence
    assert.equal(outcome(at({ [AUTO]: 'true' }, 1, same)), 'stays')
    assert.deepEqual(outcome(at({ [AUTO]: 'true' }, 2, 7)), [same, 'true'])
    assert.equal(outcome(at({ [AUTO]: 'false' }, 1, 7)), 'stays')
    assert.deepEqual(outcome(at({}, 1, 7)), [same, 'true'])
    assert.deepEqual(outcome(at({}, 2, 7)), [7, 'false'])
    assert.deepEqual(outcome(at({ [AUTO]: 'maybe' }, 2, 7)), [7, 'false'])
  })

  it('restores a mandatory spec regardless of the annotation', () => {
    assert.deepEqual(outcome(at({ [AUTO]: 'false' }, 5, 7), true), [wanted.spec.matchingPrecedence, 'true'])
  })

  it('keeps the lendablePercent that users set on the exempt level', () => {
    const exempt = mandatoryPriorityLevels.find(({ metadata }) => metadata.name === 'exempt')!
    const object: PriorityLevelConfiguration = {
      kind: 'PriorityLevelConfiguration',
      apiVersion: 'flowcontrol.apiserver.k8s.io/v1',
      metadata: exempt.metadata,
      spec: { type: 'Exempt', exempt: { nominalConcurrencyShares: 3, lendablePercent: 50 } },
      status: {},
    }
    assert.equal(planRefresh(object, exempt, true), undefined)
    assert.deepEqual(planRefresh({ ...object, spec: { type: 'Exempt' } }, exempt, true)?.spec, exempt.spec)
  })
})

describe('localApiServices() of kube-apiserver', () => {
  /** The group versions that v1.36 serves by default. */
  const stable = (group: string, version: string): boolean =>
    /^v\d+$/.test(version) && group !== 'apiregistration.k8s.io'

  it('returns twenty-one APIServices by default', () => {
    const services = localApiServices(stable)
    assert.equal(services.length, 21)
    assert.deepEqual(
      services.find(({ metadata }) => metadata.name === 'v1.'),
      {
        metadata: { name: 'v1.', labels: { 'kube-aggregator.kubernetes.io/automanaged': 'onstart' } },
        spec: { version: 'v1', groupPriorityMinimum: 18_000, versionPriority: 1 },
        status: {},
      },
    )
    assert.deepEqual(services.find(({ metadata }) => metadata.name === 'v2.autoscaling')?.spec, {
      group: 'autoscaling',
      version: 'v2',
      groupPriorityMinimum: 17_500,
      versionPriority: 30,
    })
  })

  it('returns one for each served version, beside those that users created', async () => {
    await using servers = createServers()
    const registry = await servers.open([], { own })
    const labels = { 'kube-aggregator.kubernetes.io/automanaged': 'onstart' }
    const service = (name: string, own: boolean): APIService => ({
      metadata: { name, ...(own ? { labels } : {}) },
      spec: { groupPriorityMinimum: 1, versionPriority: 1 },
      status: {},
    })
    await registry.writer.create(APIServices, service('v1beta1.batch', true))
    await registry.writer.create(APIServices, service('v1.acme.io', false))
    await registry.writer.create(APIServices, service('v1.flowcontrol.apiserver.k8s.io', true))
    await ensureApiServices(registry)
    const found = await registry.list(APIServices, '')
    assert.deepEqual(namesOf(found), ['v1.acme.io', 'v1.flowcontrol.apiserver.k8s.io'])
    const flow = found.find(({ metadata }) => metadata.name === 'v1.flowcontrol.apiserver.k8s.io')
    assert.equal(flow?.spec.groupPriorityMinimum, 16_100)
  })
})
