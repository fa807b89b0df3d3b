import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PersistentVolume, Pod } from '#apis/core/v1.ts'
import { type Access, resourceAccess, type Verdict } from '#auth/authorizer.ts'
import { NodeGraph } from '#auth/authorizers/node/graph.ts'
import { createNodeAuthorizer } from '#auth/authorizers/node/node.ts'
import { referenceTo } from '#auth/authorizers/node/references.ts'
import type { User } from '#auth/user.ts'

import { nodeRules } from '../bootstrap/roles.ts'

const alpha: User = { name: 'system:node:alpha', uid: '', groups: ['system:nodes'], extra: {} }
const beta: User = { ...alpha, name: 'system:node:beta' }

/** A pod with every kind of reference. */
const pod = {
  metadata: { namespace: 'n1', name: 'web', uid: 'u1' },
  spec: {
    nodeName: 'alpha',
    serviceAccountName: 'runner',
    imagePullSecrets: [{ name: 'pull' }],
    initContainers: [{ name: 'i', envFrom: [{ secretRef: { name: 'init-env' } }] }],
    containers: [
      {
        name: 'c',
        env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'env', key: 'k' } } }],
        envFrom: [{ configMapRef: { name: 'settings' } }],
      },
    ],
    ephemeralContainers: [
      { name: 'e', env: [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'debug', key: 'k' } } }] },
    ],
    volumes: [
      { name: 'a', secret: { secretName: 'mounted' } },
      { name: 'b', configMap: { name: 'files' } },
      { name: 'c', projected: { sources: [{ secret: { name: 'projected' } }, { configMap: { name: 'root-ca' } }] } },
      { name: 'd', persistentVolumeClaim: { claimName: 'data' } },
      { name: 'scratch', ephemeral: {} },
      { name: 'f', csi: { driver: 'd', nodePublishSecretRef: { name: 'publish' } } },
    ],
    resourceClaims: [
      { name: 'gpu', resourceClaimTemplateName: 't' },
      { name: 'nic', resourceClaimName: 'nic' },
    ],
  },
  status: { resourceClaimStatuses: [{ name: 'gpu', resourceClaimName: 'web-gpu-x' }] },
} as unknown as Pod

const volume = {
  metadata: { name: 'pv1' },
  spec: {
    claimRef: { namespace: 'n1', name: 'data' },
    csi: {
      driver: 'd',
      nodeStageSecretRef: { namespace: 'csi', name: 'stage' },
      controllerPublishSecretRef: { namespace: 'csi', name: 'control' },
    },
  },
} as unknown as PersistentVolume

function createWorld(isEnabled: (gate: string) => boolean = () => true) {
  const graph = new NodeGraph()
  graph.setPod(pod, undefined)
  graph.setVolume(volume)
  graph.setOwned(referenceTo('volumeattachment', '', 'va1'), 'alpha')
  graph.setOwned(referenceTo('resourceslice', '', 'slice1'), 'alpha')
  const authorizer = createNodeAuthorizer({ graph, rules: nodeRules(isEnabled), isEnabled })
  const ask = (user: User, parts: Partial<Access> & Pick<Access, 'verb' | 'resource'>): Verdict =>
    authorizer.authorize(user, resourceAccess(parts)) as Verdict
  return { graph, authorizer, ask }
}

describe('node authorizer', () => {
  it('allows a node to read the objects that its pods reference, and no other node', () => {
    const { ask } = createWorld()
    const needed: [string, string, string[]][] = [
      ['', 'secrets', ['pull', 'init-env', 'env', 'mounted', 'projected', 'publish']],
      ['', 'configmaps', ['settings', 'debug', 'files', 'root-ca']],
      ['', 'persistentvolumeclaims', ['data', 'web-scratch']],
      ['', 'pods', ['web']],
      ['', 'serviceaccounts', ['runner']],
      ['resource.k8s.io', 'resourceclaims', ['web-gpu-x', 'nic']],
    ]
    for (const [group, resource, names] of needed) {
      for (const name of names) {
        const access = { verb: 'get', group, resource, namespace: 'n1', name }
        assert.equal(ask(alpha, access).allowed, true, `${resource} ${name}`)
        assert.equal(ask(beta, access).allowed, false)
        assert.equal(ask(alpha, { ...access, namespace: 'n2' }).allowed, false)
        assert.equal(ask(beta, access).reason, "no relationship found between node 'beta' and this object")
      }
    }
  })

  it('follows volumes to the Secrets for mounting, not to those of CSI controllers', () => {
    const { ask, graph } = createWorld()
    const secret = (name: string): Verdict => ask(alpha, { verb: 'get', resource: 'secrets', namespace: 'csi', name })
    assert.equal(secret('stage').allowed, true)
    assert.equal(secret('control').allowed, false)
    assert.equal(ask(alpha, { verb: 'get', resource: 'persistentvolumes', name: 'pv1' }).allowed, true)
    assert.equal(ask(beta, { verb: 'get', resource: 'persistentvolumes', name: 'pv1' }).allowed, false)
    graph.removeVolume('pv1')
    assert.equal(secret('stage').allowed, false)
  })

  it('removes the references of a deleted pod unless another pod on the node has them', () => {
    const { ask, graph } = createWorld()
    const settings = (): boolean =>
      ask(alpha, { verb: 'get', resource: 'configmaps', namespace: 'n1', name: 'settings' }).allowed
    const twin = { ...pod, metadata: { ...pod.metadata, name: 'twin' } }
    graph.setPod(twin, undefined)
    graph.removePod('n1', 'web')
    assert.equal(settings(), true)
    graph.removePod('n1', 'twin')
    assert.equal(settings(), false)
  })

  it('grants a node nothing for mirror pods', () => {
    const { ask, graph } = createWorld()
    graph.removePod('n1', 'web')
    graph.setPod(
      { ...pod, metadata: { ...pod.metadata, annotations: { 'kubernetes.io/config.mirror': 'x' } } },
      undefined,
    )
    assert.equal(ask(alpha, { verb: 'get', resource: 'pods', namespace: 'n1', name: 'web' }).allowed, true)
    assert.equal(ask(alpha, { verb: 'get', resource: 'secrets', namespace: 'n1', name: 'mounted' }).allowed, false)
  })

  it('processes an updated pod again only if its references may have changed', () => {
    const { ask, graph } = createWorld()
    const more = {
      ...pod,
      spec: { ...pod.spec, containers: [{ name: 'c', envFrom: [{ secretRef: { name: 'new' } }] }] },
    } as unknown as Pod
    graph.setPod(more, pod)
    const secret = (): boolean => ask(alpha, { verb: 'get', resource: 'secrets', namespace: 'n1', name: 'new' }).allowed
    assert.equal(secret(), false)
    graph.setPod({ ...more, metadata: { ...more.metadata, uid: 'u2' } }, pod)
    assert.equal(secret(), true)
  })

  const own = 'coordination.k8s.io'
  const rules: [string, Partial<Access> & Pick<Access, 'verb' | 'resource'>, true | string][] = [
    ['to list secrets', { verb: 'list', resource: 'secrets', namespace: 'n1' }, 'No Object name found'],
    ['to watch one secret of its pods', { verb: 'watch', resource: 'secrets', namespace: 'n1', name: 'mounted' }, true],
    [
      'to list secrets of all namespaces',
      { verb: 'list', resource: 'secrets' },
      'can only read namespaced object of this type',
    ],
    [
      'to write secrets',
      { verb: 'update', resource: 'secrets', namespace: 'n1', name: 'mounted' },
      'can only read resources of this type',
    ],
    ['to get its Node', { verb: 'get', resource: 'nodes', name: 'alpha' }, true],
    [
      'to get another Node',
      { verb: 'get', resource: 'nodes', name: 'beta' },
      "node 'alpha' cannot read 'beta', only its own Node object",
    ],
    [
      'to list all Nodes',
      { verb: 'list', resource: 'nodes' },
      "node 'alpha' cannot read all nodes, only its own Node object",
    ],
    ['to delete its Node', { verb: 'delete', resource: 'nodes', name: 'alpha' }, ''],
    [
      'to patch the status of its Node',
      { verb: 'patch', resource: 'nodes', subresource: 'status', name: 'alpha' },
      true,
    ],
    ['to use nodes/proxy of its Node', { verb: 'get', resource: 'nodes', subresource: 'proxy', name: 'alpha' }, ''],
    ['to watch its pods', { verb: 'watch', resource: 'pods', fieldSelector: 'spec.nodeName=alpha' }, true],
    [
      'to list pods of other nodes',
      { verb: 'list', resource: 'pods', fieldSelector: 'spec.nodeName=beta' },
      'can only list/watch pods with spec.nodeName field selector',
    ],
    [
      'to list all pods',
      { verb: 'list', resource: 'pods', fieldSelector: 'spec.nodeName!=alpha' },
      'can only list/watch pods with spec.nodeName field selector',
    ],
    [
      'to list pods by an invalid field selector',
      { verb: 'list', resource: 'pods', fieldSelector: '=,=' },
      'can only list/watch pods with spec.nodeName field selector',
    ],
    ['to exec into pods', { verb: 'create', resource: 'pods', subresource: 'exec', namespace: 'n1', name: 'web' }, ''],
    [
      'to evict pods',
      { verb: 'create', resource: 'pods', subresource: 'eviction', namespace: 'n1', name: 'web' },
      true,
    ],
    [
      'to update its Lease',
      { verb: 'update', group: own, resource: 'leases', namespace: 'kube-node-lease', name: 'alpha' },
      true,
    ],
    [
      'to update the Lease of another node',
      { verb: 'update', group: own, resource: 'leases', namespace: 'kube-node-lease', name: 'beta' },
      'can only access node lease with the same name as the requesting node',
    ],
    [
      'to get a Lease for leader election',
      { verb: 'get', group: own, resource: 'leases', namespace: 'kube-system', name: 'alpha' },
      'can only access leases in the "kube-node-lease" system namespace',
    ],
    [
      'to list Leases',
      { verb: 'list', group: own, resource: 'leases', namespace: 'kube-node-lease' },
      'can only get, create, update, patch, or delete a node lease',
    ],
    [
      'to request a token for an account of its pods',
      { verb: 'create', resource: 'serviceaccounts', subresource: 'token', namespace: 'n1', name: 'runner' },
      true,
    ],
    [
      'to request a token for another account',
      { verb: 'create', resource: 'serviceaccounts', subresource: 'token', namespace: 'n1', name: 'admin' },
      "no relationship found between node 'alpha' and this object",
    ],
    [
      'to create a service account',
      { verb: 'create', resource: 'serviceaccounts', namespace: 'n1' },
      'can only create tokens for individual service accounts',
    ],
    ['to patch its CSINode', { verb: 'patch', group: 'storage.k8s.io', resource: 'csinodes', name: 'alpha' }, true],
    [
      'to patch another CSINode',
      { verb: 'patch', group: 'storage.k8s.io', resource: 'csinodes', name: 'beta' },
      'can only access CSINode with the same name as the requesting node',
    ],
    [
      'to get its VolumeAttachment',
      { verb: 'get', group: 'storage.k8s.io', resource: 'volumeattachments', name: 'va1' },
      true,
    ],
    [
      'to update its ResourceSlice',
      { verb: 'update', group: 'resource.k8s.io', resource: 'resourceslices', name: 'slice1' },
      true,
    ],
    [
      'to list all ResourceSlices',
      { verb: 'list', group: 'resource.k8s.io', resource: 'resourceslices' },
      'can only list/watch/deletecollection resourceslices with nodeName field selector',
    ],
    [
      'to patch the status of a claim',
      { verb: 'patch', resource: 'persistentvolumeclaims', subresource: 'status', namespace: 'n1', name: 'data' },
      true,
    ],
    ['to read services', { verb: 'watch', resource: 'services' }, true],
    ['to write services', { verb: 'update', resource: 'services', namespace: 'n1', name: 'x' }, ''],
    [
      'to create SubjectAccessReviews',
      { verb: 'create', group: 'authorization.k8s.io', resource: 'subjectaccessreviews' },
      true,
    ],
  ]
  for (const [what, access, expected] of rules) {
    it(`${expected === true ? 'allows' : 'refuses'} node alpha ${what}`, () => {
      const verdict = createWorld().ask(alpha, access)
      assert.deepEqual(
        { ...verdict },
        { allowed: expected === true, denied: false, reason: expected === true ? '' : expected },
      )
    })
  }

  it('returns no opinion about users that are not nodes, or nodes without a name', () => {
    const { ask, authorizer } = createWorld()
    const access = { verb: 'watch', resource: 'services' }
    assert.equal(ask({ ...alpha, groups: [] }, access).allowed, false)
    assert.equal(ask({ ...alpha, name: 'jane' }, access).allowed, false)
    assert.equal(ask({ ...alpha, name: 'system:node:' }, access).reason, 'unknown node for user "system:node:"')
    assert.equal(authorizer.rulesFor(alpha, 'n1').incomplete, true)
    assert.equal(authorizer.rulesFor({ ...alpha, name: 'jane' }, 'n1').incomplete, false)
  })
})
