import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { ConfigMaps } from '#apis/core/v1.ts'
import { type FlowSchema, FlowSchemas, PriorityLevelConfigurations } from '#apis/flowcontrol/v1.ts'

import type { Registry } from '../registry/registry.ts'
import { createServers } from '../registry/servers.fixture.ts'
import { startFlowStatus } from './flow-status.ts'

const fail = (error: unknown): void => assert.fail(error as Error)
const addSchema = (registry: Registry): Promise<boolean> =>
  registry.writer.ensure(FlowSchemas, {
    metadata: { name: 's' },
    spec: { matchingPrecedence: 1, priorityLevelConfiguration: { name: 'l' } },
    status: {},
  })
const addLevel = (registry: Registry): Promise<boolean> =>
  registry.writer.ensure(PriorityLevelConfigurations, { metadata: { name: 'l' }, spec: { type: 'Exempt' }, status: {} })
const conditionOf = async (registry: Registry): Promise<unknown> => {
  const schema: FlowSchema | undefined = await registry.get(FlowSchemas, '', 's')
  const { lastTransitionTime: _, ...condition } = schema?.status.conditions?.[0] ?? {}
  return condition
}
const MISSING = {
  type: 'Dangling',
  status: 'True',
  reason: 'NotFound',
  message: 'This FlowSchema references the PriorityLevelConfiguration object named "l" but there is no such object',
}
const FOUND = {
  type: 'Dangling',
  status: 'False',
  reason: 'Found',
  message: 'This FlowSchema references the PriorityLevelConfiguration object named "l" and it exists',
}

describe('Dangling condition of a FlowSchema', () => {
  it('is True exactly while the priority level does not exist', async () => {
    await using servers = createServers()
    const registry = await servers.open([FlowSchemas, PriorityLevelConfigurations])
    const following = startFlowStatus(registry, fail)
    await addSchema(registry)
    await servers.clock.advance(0)
    assert.deepEqual(await conditionOf(registry), MISSING)
    await addLevel(registry)
    await servers.clock.advance(0)
    assert.deepEqual(await conditionOf(registry), FOUND)
    await registry.writer.delete(PriorityLevelConfigurations, { name: 'l' })
    await servers.clock.advance(0)
    assert.deepEqual(await conditionOf(registry), MISSING)
    following?.close()
  })

  it('is not written again if nothing has changed', async () => {
    await using servers = createServers()
    const registry = await servers.open([FlowSchemas, PriorityLevelConfigurations])
    await addLevel(registry)
    await addSchema(registry)
    const first = startFlowStatus(registry, fail)
    await servers.clock.advance(0)
    first?.close()
    const before = (await registry.get(FlowSchemas, '', 's'))?.metadata.resourceVersion
    const second = startFlowStatus(registry, fail)
    await servers.clock.advance(0)
    second?.close()
    assert.equal((await registry.get(FlowSchemas, '', 's'))?.metadata.resourceVersion, before)
  })

  it('is written once for each FlowSchema that existed before the start', async (t) => {
    await using servers = createServers()
    const registry = await servers.open([FlowSchemas, PriorityLevelConfigurations])
    await addLevel(registry)
    await addSchema(registry)
    const commit = t.mock.method(registry.services.backend, 'commit')
    const following = startFlowStatus(registry, fail)
    await servers.clock.advance(0)
    following?.close()
    assert.equal(commit.mock.callCount(), 1)
  })

  it('is not written if flowcontrol.apiserver.k8s.io is not served', async () => {
    await using servers = createServers()
    assert.equal(startFlowStatus(await servers.open([ConfigMaps]), fail), undefined)
  })
})
