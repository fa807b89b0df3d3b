import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { Pods } from '#apis/core/v1.ts'
import { type ClusterRole, ClusterRoleBindings, ClusterRoles, RoleBindings, Roles } from '#apis/rbac/v1.ts'
import { resourceAccess } from '#auth/authorizer.ts'
import { NodeGraph } from '#auth/authorizers/node/graph.ts'
import { RbacIndex } from '#auth/authorizers/rbac/rbac.ts'
import type { KubeObject } from '#meta/object.ts'

import { ensurePolicy } from '../bootstrap/policy.ts'
import { defineResource } from '../registry/resource.ts'
import { createServers } from '../registry/servers.fixture.ts'
import { createLiveObjects } from './live-objects.ts'
import { followNodeGraph } from './node-graph-follower.ts'
import { followRbac } from './rbac-follower.ts'

const own = [Roles, ClusterRoles, RoleBindings, ClusterRoleBindings, Pods].map((kind) =>
  defineResource<KubeObject>({ kind, nameRule: () => [], generation: 'spec' }),
)

const jane = { name: 'jane', uid: '', groups: ['system:authenticated'], extra: {} }
const get = resourceAccess({ verb: 'get', resource: 'pods', namespace: 'n1' })

describe('authorizers that watch stored objects', () => {
  it('apply RBAC objects that were written before and after the start', async () => {
    await using servers = createServers()
    const registry = await servers.open([], { own })
    const rules = [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }]
    const role: ClusterRole = {
      kind: 'ClusterRole',
      apiVersion: 'rbac.authorization.k8s.io/v1',
      metadata: { name: 'r' },
      rules,
    }
    await registry.writer.create(ClusterRoles, role)
    const index = new RbacIndex()
    const following = followRbac(registry, index)
    await following.ready
    assert.equal(index.authorize(jane, get).allowed, false)
    await registry.writer.create(ClusterRoleBindings, {
      metadata: { name: 'b' },
      subjects: [{ kind: 'User', name: 'jane' }],
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'r' },
    })
    await registry.services.cache.fresh()
    assert.equal(index.authorize(jane, get).allowed, true)
    await registry.writer.update(ClusterRoles, { name: 'r' }, (live) => ({ ...live, rules: [] }))
    await registry.services.cache.fresh()
    assert.equal(index.authorize(jane, get).allowed, false)
    following.close()
  })

  it('find the default RBAC policy, which is created once and repaired', async () => {
    await using servers = createServers()
    const registry = await servers.open([], { own })
    await ensurePolicy(registry, () => false)
    const count = async (): Promise<number> => (await registry.list(ClusterRoles, '')).length
    assert.equal(await count(), 69)
    const before = (await registry.get(ClusterRoles, '', 'view'))?.metadata.resourceVersion
    await registry.writer.update(ClusterRoles, { name: 'cluster-admin' }, (live) => ({ ...live, rules: [] }))
    await registry.writer.delete(ClusterRoles, { name: 'edit' })
    await ensurePolicy(registry, () => false)
    assert.equal(await count(), 69)
    assert.equal((await registry.get(ClusterRoles, '', 'cluster-admin'))?.rules?.length, 2)
    assert.equal((await registry.get(ClusterRoles, '', 'view'))?.metadata.resourceVersion, before)
  })

  it('connect pods with nodes, and return the same Node object until it changes', async () => {
    await using servers = createServers()
    const registry = await servers.open([], { own })
    const graph = new NodeGraph()
    const following = followNodeGraph(registry, graph)
    await following.ready
    const pod = {
      kind: 'Pod',
      apiVersion: 'v1',
      metadata: { name: 'p', namespace: 'n1' },
      spec: { nodeName: 'alpha', serviceAccountName: 'bot', containers: [] },
      status: {},
    }
    await registry.writer.create(Pods, pod)
    await registry.services.cache.fresh()
    assert.equal(graph.relates('alpha', 'serviceaccount/n1/bot'), true)
    const live = createLiveObjects(registry)
    const seen = live.peek(Pods, 'n1', 'p')
    assert.ok(seen !== undefined && live.peek(Pods, 'n1', 'p') === seen)
    assert.equal(await live.get(Pods, 'n1', 'p'), seen)
    await registry.writer.delete(Pods, { namespace: 'n1', name: 'p' })
    await registry.services.cache.fresh()
    assert.equal(graph.relates('alpha', 'serviceaccount/n1/bot'), false)
    assert.equal(live.peek(Pods, 'n1', 'p'), undefined)
    following.close()
  })

  it('fail at start if the RBAC resources are not served', () => {
    assert.throws(() => followRbac({ storeOf: () => undefined }, new RbacIndex()), /needs the resource "roles"/)
  })
})
