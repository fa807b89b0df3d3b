import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { Namespaces, type ResourceQuota, ResourceQuotas, Secrets } from '#apis/core/v1.ts'
import type { Kind } from '#apis/kinds.ts'
import { createServers } from '#apiserver/registry/servers.fixture.ts'
import type { WriteRequest } from '#apiserver/registry/services.ts'
import { NO_OPINION } from '#auth/authorizer.ts'
import { createSeededRandom } from '#lib/random.ts'
import { apiVersionOf } from '#meta/kind.ts'
import type { KubeObject } from '#meta/object.ts'

import { createAdmission } from '../index.ts'
import { createRegistryQuotaWriter } from './registry-writer.ts'

const user = { name: 'alice', uid: '', groups: [], extra: {} }

function requestFor(kind: Kind, subresource = ''): WriteRequest {
  const { signal } = new AbortController()
  const namespace = kind.namespaced ? 'ns' : ''
  const rest = { dryRun: false, manager: 'test', options: {}, warn: () => undefined, signal }
  return { gvk: kind, namespace, subresource, user, ...rest }
}

describe('ResourceQuota in a real store', () => {
  it('is never exceeded by concurrent writers', async () => {
    await using servers = createServers()
    const { clock } = servers
    const registry = await servers.open([Namespaces, Secrets, ResourceQuotas], {
      admission: (objects) =>
        createAdmission({
          clock,
          random: createSeededRandom(1),
          isEnabled: () => true,
          authorize: () => NO_OPINION,
          quotas: createRegistryQuotaWriter(objects),
          namespaces: { ensure: () => Promise.resolve() },
          resourcesFor: () => [],
        }),
    })
    const create = (kind: Kind, body: object): Promise<unknown> => {
      const nothing = { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: {} }
      const store = registry.storeOf(kind)!
      const request = requestFor(kind)
      return store.create(request, { ...nothing, ...body })
    }
    await create(Namespaces, { metadata: { name: 'ns' } })
    const hard = { secrets: '30' }
    await create(ResourceQuotas, { metadata: { name: 'q', namespace: 'ns' }, spec: { hard } })
    const counted = (live: KubeObject): KubeObject =>
      ({ ...live, status: { hard, used: { secrets: '0' } } }) as KubeObject
    await registry.storeOf(ResourceQuotas)!.update(requestFor(ResourceQuotas, 'status'), 'q', counted)

    const writes = Array.from({ length: 50 }, (_, at) =>
      create(Secrets, { metadata: { name: `s${at}`, namespace: 'ns' } }),
    )
    const outcomes = await Promise.allSettled(writes)
    const refused = outcomes.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[]
    assert.equal(refused.length, 20)
    for (const { reason } of refused) {
      assert.match(
        (reason as Error).message,
        /^secrets "s\d+" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=30, limited: secrets=30$/,
      )
    }
    const quota = (await registry.get(ResourceQuotas, 'ns', 'q')) as ResourceQuota
    assert.deepEqual(quota.status, { hard, used: { secrets: '30' } })
  })
})
