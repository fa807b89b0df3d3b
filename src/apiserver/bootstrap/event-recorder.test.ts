import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { type Event, Events, Services } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { IPAddresses } from '#apis/networking/v1.ts'
import { failure } from '#meta/status-errors.ts'

import type { Registry } from '../registry/registry.ts'
import { defineResource } from '../registry/resource.ts'
import { createServers, type TestServers } from '../registry/servers.fixture.ts'
import { createEventRecorder, type ServerEvent } from './event-recorder.ts'

function eventOf(name: string, message = 'no', kind: Kind = Services, namespace?: string): ServerEvent {
  const metadata = { name, uid: `uid-${name}`, ...(namespace !== undefined && { namespace }) }
  return { kind, regarding: { metadata }, type: 'Warning', reason: 'Why', action: 'What', message }
}

function recorderOf(registry: Registry): { readonly record: (event: ServerEvent) => void; readonly errors: unknown[] } {
  const errors: unknown[] = []
  const onError = (error: unknown): void => void errors.push(error)
  return { record: createEventRecorder(registry, { controller: 'repair', hostname: 'here', onError }), errors }
}

async function events(servers: TestServers, registry: Registry): Promise<readonly Event[]> {
  await servers.clock.advance(0)
  return registry.list(Events, '')
}

describe('events that the server records', () => {
  it('refer to an object and are in its namespace or in namespace default', async () => {
    await using servers = createServers()
    const registry = await servers.open([Events])
    const { record, errors } = recorderOf(registry)
    record(eventOf('web', 'no', Services, 'ns'))
    record(eventOf('10.0.0.1', 'no', IPAddresses))
    const [address, service] = await events(servers, registry)
    assert.deepEqual(service?.involvedObject, {
      kind: 'Service',
      apiVersion: 'v1',
      name: 'web',
      namespace: 'ns',
      uid: 'uid-web',
    })
    assert.deepEqual([service?.metadata.namespace, address?.metadata.namespace], ['ns', 'default'])
    assert.equal(address?.involvedObject.apiVersion, 'networking.k8s.io/v1')
    assert.deepEqual(
      [service?.reportingComponent, service?.reportingInstance, service?.reason, service?.action, service?.type],
      ['repair', 'repair-here', 'Why', 'What', 'Warning'],
    )
    assert.match(service?.metadata.name ?? '', /^web\.[0-9a-f]+$/)
    assert.deepEqual(errors, [])
  })

  it('become a series when they repeat, and a new event after a pause', async () => {
    await using servers = createServers()
    const registry = await servers.open([Events])
    const { record } = recorderOf(registry)
    const counts = async (): Promise<(number | undefined)[]> =>
      (await events(servers, registry)).map(({ series }) => series?.count)
    for (let n = 0; n < 3; n++) {
      record(eventOf('web'))
      await servers.clock.advance(180_000)
    }
    assert.deepEqual(await counts(), [3])
    record(eventOf('web', 'something else'))
    assert.deepEqual(await counts(), [3, undefined])
    await servers.clock.advance(360_001)
    record(eventOf('web'))
    assert.equal((await counts()).length, 3)
  })

  it('are created again after a user deletes them', async () => {
    await using servers = createServers()
    const registry = await servers.open([Events])
    const { record, errors } = recorderOf(registry)
    record(eventOf('web'))
    const [first] = await events(servers, registry)
    await registry.writer.delete(Events, { namespace: 'default', name: first?.metadata.name ?? '' })
    record(eventOf('web'))
    const [second] = await events(servers, registry)
    assert.notEqual(second?.metadata.name, first?.metadata.name)
    assert.equal(second?.series, undefined)
    assert.deepEqual(errors, [])
  })

  it('do not fail the caller if the write fails', async () => {
    await using servers = createServers()
    const allocate = (): Promise<never> => Promise.reject(failure({ code: 500, message: 'full' }))
    const registry = await servers.open([], { own: [defineResource({ kind: Events, allocate })] })
    const { record, errors } = recorderOf(registry)
    record(eventOf('web'))
    assert.deepEqual(await events(servers, registry), [])
    assert.deepEqual(
      errors.map((error) => (error as Error).message),
      ['full'],
    )
  })
})
