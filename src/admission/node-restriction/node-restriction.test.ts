import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { ALLOWED, NO_OPINION } from '#auth/authorizer.ts'
import { refusal, refusalStatus, type SampleWrite } from '#kits/admission/sample-write.ts'
import { createKey } from '#lib/x509/key.ts'
import { createRequest } from '#lib/x509/request.ts'

import { createNodeRestriction } from './node-restriction.ts'

const OFF = new Set(['AllowInsecureKubeletCertificateSigningRequests'])
const isEnabled = (gate: string): boolean => !OFF.has(gate)
const plugin = createNodeRestriction({
  isEnabled,
  ask: (_, { verb, resource, name }) =>
    `${verb} ${resource} ${name}` === 'request-serviceaccounts-token-audience granted sa' ? ALLOWED : NO_OPINION,
})

const user = { name: 'system:node:n', uid: '', groups: ['system:nodes'], extra: {} }

async function why(write: SampleWrite): Promise<string | undefined> {
  const message = await refusal(plugin, { user, ...write })
  return message?.replace(/^\S+ "[^"]*" is forbidden: /, '')
}

describe('NodeRestriction', () => {
  it('ignores users that are not kubelets', async () => {
    const write = { resource: 'nodes', object: { metadata: { name: 'other' } } }
    assert.equal(await refusal(plugin, write), undefined)
    assert.equal(await refusal(plugin, { ...write, user: { ...user, groups: [] } }), undefined)
    assert.equal(
      await refusal(plugin, { ...write, user: { ...user, name: 'system:node:' } }),
      'nodes "other" is forbidden: could not determine node from user "system:node:"',
    )
  })
})

const owner = { apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u', controller: true }

function mirror(spec: object = {}, metadata: object = {}): object {
  return {
    metadata: {
      name: 'p',
      namespace: 'ns',
      annotations: { 'kubernetes.io/config.mirror': 'x' },
      ownerReferences: [owner],
      ...metadata,
    },
    spec: { nodeName: 'n', containers: [{ name: 'c', resources: {} }], ...spec },
  }
}

describe('NodeRestriction for a write of pods by a kubelet', () => {
  const world = { nodes: [{ metadata: { name: 'n', uid: 'u' } }] }
  const volume = (source: object): object => ({ volumes: [{ name: 'v', ...source }] })
  const projected = (source: object): object => volume({ projected: { sources: [source] } })
  const references = (resource: string): string => `node "n" can not create pods that reference ${resource}`
  const single = 'node "n" can only create pods with an owner reference set to itself'
  const creates: readonly [what: string, pod: object, message: string | undefined][] = [
    ['a mirror pod', mirror(), undefined],
    [
      'a pod that is no mirror pod',
      mirror({}, { annotations: {} }),
      'pod does not have "kubernetes.io/config.mirror" annotation, node "n" can only create mirror pods',
    ],
    [
      'a mirror pod on another node',
      mirror({ nodeName: 'o' }),
      'node "n" can only create pods with spec.nodeName set to itself',
    ],
    [
      'a mirror pod with two owners',
      mirror({}, { ownerReferences: [owner, owner] }),
      'node "n" can only create pods with a single owner reference set to itself',
    ],
    ['a mirror pod without owner', mirror({}, { ownerReferences: [] }), single],
    ['a mirror pod owned by another kind', mirror({}, { ownerReferences: [{ ...owner, kind: 'Pod' }] }), single],
    [
      'a mirror pod whose owner is no controller',
      mirror({}, { ownerReferences: [{ ...owner, controller: false }] }),
      'node "n" can only create pods with a controller owner reference set to itself',
    ],
    [
      'a mirror pod with blockOwnerDeletion',
      mirror({}, { ownerReferences: [{ ...owner, blockOwnerDeletion: true }] }),
      'node "n" must not set blockOwnerDeletion on an owner reference',
    ],
    [
      'a mirror pod owned by a Node with another UID',
      mirror({}, { ownerReferences: [{ ...owner, uid: 'x' }] }),
      'node n UID mismatch: expected x got u',
    ],
    ['a mirror pod with a service account', mirror({ serviceAccountName: 'a' }), references('serviceaccounts')],
    ['a mirror pod with a pull secret', mirror({ imagePullSecrets: [{ name: 's' }] }), references('secrets')],
    ['a mirror pod with a secret volume', mirror(volume({ secret: { secretName: 's' } })), references('secrets')],
    [
      'a mirror pod with a config map',
      mirror({ containers: [{ name: 'c', resources: {}, envFrom: [{ configMapRef: { name: 'm' } }] }] }),
      references('configmaps'),
    ],
    [
      'a mirror pod with a nameless config map',
      mirror(volume({ configMap: {} })),
      references('configmaps (via configmap volumes)'),
    ],
    ['a mirror pod with a device claim', mirror({ resourceClaims: [{ name: 'c' }] }), references('resourceclaims')],
    [
      'a mirror pod with a volume claim',
      mirror(volume({ persistentVolumeClaim: { claimName: 'c' } })),
      references('persistentvolumeclaims'),
    ],
    [
      'a mirror pod with an ephemeral claim',
      mirror(volume({ ephemeral: {} })),
      references('persistentvolumeclaims (via ephemeral volumes)'),
    ],
    [
      'a mirror pod with a CSI volume',
      mirror(volume({ csi: { driver: 'd' } })),
      references('csidrivers (via CSI volumes)'),
    ],
    [
      'a mirror pod with a glusterfs volume',
      mirror(volume({ glusterfs: {} })),
      references('endpoints (via glusterFS volumes)'),
    ],
    [
      'a mirror pod with a token',
      mirror(projected({ serviceAccountToken: { path: 't' } })),
      references('serviceaccounts (via projected volumes)'),
    ],
    [
      'a mirror pod with a trust bundle',
      mirror(projected({ clusterTrustBundle: {} })),
      references('clustertrustbundles'),
    ],
    ['a mirror pod with a pod certificate', mirror(projected({ podCertificate: {} })), references('podcertificates')],
    ['a mirror pod with a downward API volume', mirror(projected({ downwardAPI: {} })), undefined],
    ['a mirror pod with a host path', mirror(volume({ hostPath: { path: '/' } })), undefined],
    [
      'a mirror pod with an unknown volume type',
      mirror(volume({ future: {} })),
      'error checking mirror pod for API references: unknown volume type for volume  "v"',
    ],
  ]
  for (const [what, object, message] of creates) {
    it(`${message === undefined ? 'allows' : 'refuses'} creation of ${what}`, async () => {
      assert.equal(await why({ resource: 'pods', object, world }), message)
    })
  }

  it('responds with 404 if the Node of the kubelet does not exist', async () => {
    const status = await refusalStatus(plugin, { user, resource: 'pods', object: mirror() })
    assert.equal(status?.code, 404)
    assert.equal(status?.message, 'node "n" not found')
  })

  it('allows a kubelet to delete pods of its node, and rejects updates of pods', async () => {
    assert.equal(await why({ resource: 'pods', oldObject: mirror() }), undefined)
    assert.equal(
      await why({ resource: 'pods', oldObject: mirror({ nodeName: 'o' }) }),
      'node "n" can only delete pods with spec.nodeName set to itself',
    )
    assert.equal(
      await why({ resource: 'pods', object: mirror(), oldObject: mirror() }),
      'unexpected operation "UPDATE", node "n" can only create and delete mirror pods',
    )
    assert.equal(
      await why({ resource: 'pods', subresource: 'binding', object: mirror() }),
      "unexpected pod subresource \"binding\", only 'status' and 'eviction' are allowed",
    )
  })

  const withStatus = (status: object, rest: object = {}): object => ({ ...mirror(), ...rest, status })
  const statuses: readonly [what: string, next: object, old: object, message: string | undefined][] = [
    ['the phase of its pod', withStatus({ phase: 'Running' }), withStatus({}), undefined],
    [
      'a pod on another node',
      withStatus({}),
      { ...mirror({ nodeName: 'o' }), status: {} },
      'node "n" can only update pod status for pods with spec.nodeName set to itself',
    ],
    [
      'labels',
      withStatus({}, { metadata: { name: 'p', labels: { a: 'b' } } }),
      withStatus({}),
      'node "n" cannot update labels through pod status',
    ],
    [
      'resource claim statuses',
      withStatus({ resourceClaimStatuses: [{ name: 'c' }] }),
      withStatus({}),
      'node "n" cannot update resource claim statues',
    ],
    [
      'the extended resource claim status',
      withStatus({ extendedResourceClaimStatus: { resourceClaimName: 'c' } }),
      withStatus({}),
      'node "n" cannot update extended resource claim status',
    ],
  ]
  for (const [what, object, oldObject, message] of statuses) {
    it(`${message === undefined ? 'allows' : 'refuses'} a status update of ${what}`, async () => {
      assert.equal(await why({ resource: 'pods', subresource: 'status', object, oldObject }), message)
    })
  }

  it('allows a kubelet to evict pods of its node only', async () => {
    const object = { metadata: { name: 'p' } }
    const evict = (spec: object): Promise<string | undefined> =>
      why({ resource: 'pods', subresource: 'eviction', object, world: { pods: [mirror(spec)] } })
    assert.equal(await evict({}), undefined)
    assert.equal(await evict({ nodeName: 'o' }), 'node n can only evict pods with spec.nodeName set to itself')
    const nameless = { resource: 'pods', subresource: 'eviction', object: { metadata: {} } }
    assert.equal(await why(nameless), 'could not determine pod from request data')
    const status = await refusalStatus(plugin, { user, resource: 'pods', subresource: 'eviction', object })
    assert.equal(status?.message, 'pod "p" not found')
  })
})

describe('NodeRestriction for a write of nodes by a kubelet', () => {
  const node = (labels: object = {}, spec: object = {}, metadata: object = {}): object => ({
    metadata: { name: 'n', labels, ...metadata },
    spec,
  })
  const configSource = { configMap: { name: 'm' } }

  it('rejects a write to the Node of another kubelet', async () => {
    assert.equal(
      await why({ resource: 'nodes', object: { metadata: { name: 'o' } } }),
      'node "n" is not allowed to modify node "o"',
    )
    assert.equal(await why({ resource: 'nodes', oldObject: node() }), undefined)
  })

  const labels: readonly [label: string, allowed: boolean][] = [
    ['kubernetes.io/hostname', true],
    ['kubernetes.io/os', true],
    ['topology.kubernetes.io/zone', true],
    ['failure-domain.beta.kubernetes.io/region', true],
    ['node.kubernetes.io/anything', true],
    ['sub.kubelet.kubernetes.io/anything', true],
    ['example.com/anything', true],
    ['plain', true],
    ['node-restriction.kubernetes.io/x', false],
    ['sub.node-restriction.kubernetes.io/x', false],
    ['node-role.kubernetes.io/master', false],
    ['kubernetes.io/other', false],
    ['foo.k8s.io/x', false],
  ]
  for (const [label, allowed] of labels) {
    it(`${allowed ? 'allows' : 'rejects'} a change of the label ${label}`, async () => {
      const labelled = node({ [label]: 'x' })
      assert.equal(
        await why({ resource: 'nodes', object: labelled }),
        allowed ? undefined : `node "n" is not allowed to set the following labels: ${label}`,
      )
      const message = allowed ? undefined : `is not allowed to modify labels: ${label}`
      assert.equal(await why({ resource: 'nodes', object: labelled, oldObject: node() }), message)
      assert.equal(await why({ resource: 'nodes', object: node(), oldObject: labelled }), message)
      assert.equal(await why({ resource: 'nodes', object: labelled, oldObject: labelled }), undefined)
    })
  }

  it('rejects changes of taints, owners and configSource', async () => {
    const update = (object: object, oldObject: object = node()): Promise<string | undefined> =>
      why({ resource: 'nodes', object, oldObject })
    assert.equal(
      await update(node({}, { taints: [{ key: 'a', effect: 'NoSchedule' }] })),
      'node "n" is not allowed to modify taints',
    )
    assert.equal(
      await update(node({}, {}, { ownerReferences: [owner] })),
      'node "n" is not allowed to modify ownerReferences',
    )
    assert.equal(
      await update(node({}, { configSource })),
      'node "n" is not allowed to update configSource to a new non-nil configSource',
    )
    assert.equal(await update(node(), node({}, { configSource })), undefined)
    assert.equal(
      await why({ resource: 'nodes', object: node({}, { configSource }) }),
      'node "n" is not allowed to create pods with a non-nil configSource',
    )
  })
})

describe('NodeRestriction for objects with the name of the node', () => {
  it('allows a kubelet to write only the Lease and CSINode of its node', async () => {
    const leases = 'leases.coordination.k8s.io'
    const named = (name: string): object => ({ metadata: { name } })
    const namespace = 'kube-node-lease'
    assert.equal(await why({ resource: leases, namespace, object: named('n') }), undefined)
    assert.equal(
      await why({ resource: leases, namespace, object: named('o') }),
      'can only access node lease with the same name as the requesting node',
    )
    assert.equal(
      await why({ resource: leases, object: named('n') }),
      'can only access leases in the "kube-node-lease" system namespace',
    )
    assert.equal(await why({ resource: 'csinodes.storage.k8s.io', oldObject: named('n') }), undefined)
    assert.equal(
      await why({ resource: 'csinodes.storage.k8s.io', oldObject: named('o') }),
      'can only access CSINode with the same name as the requesting node',
    )
  })

  it('allows a kubelet to write only ResourceSlices of its node', async () => {
    const slice = (nodeName?: string): object => ({ metadata: { name: 's' }, spec: { nodeName } })
    const resource = 'resourceslices.resource.k8s.io'
    assert.equal(await why({ resource, object: slice('n') }), undefined)
    assert.equal(
      await why({ resource, object: slice('o') }),
      'can only create ResourceSlice with the same NodeName as the requesting node',
    )
    assert.equal(
      await why({ resource, oldObject: slice() }),
      'can only delete ResourceSlice with the same NodeName as the requesting node',
    )
  })
})

describe('NodeRestriction for PersistentVolumeClaims', () => {
  const claim = (status: object, labels: object = {}): object => ({ metadata: { name: 'c', labels }, spec: {}, status })
  const resource = 'persistentvolumeclaims'

  it('allows a kubelet to update only sizes and conditions in the status', async () => {
    const object = claim({
      phase: 'Bound',
      capacity: { storage: '2Gi' },
      conditions: [],
      allocatedResources: { storage: '2Gi' },
    })
    const oldObject = claim({ phase: 'Bound' })
    assert.equal(await why({ resource, subresource: 'status', object, oldObject }), undefined)
    assert.equal(
      await why({ resource, subresource: 'status', object: claim({ phase: 'Lost' }, { a: 'b' }), oldObject }),
      'node "n" is not allowed to update fields other than status.quantity and status.conditions: metadata.labels, status.phase',
    )
    assert.equal(await why({ resource, object, oldObject }), 'may only update PVC status')
    assert.equal(await why({ resource, subresource: 'status', object }), 'unexpected operation "CREATE"')
  })
})

describe('NodeRestriction for token requests', () => {
  const token = (ref: object | null, audiences: string[] | null = null): object => ({
    metadata: {},
    spec: { audiences, boundObjectRef: ref, expirationSeconds: null },
  })
  const bound = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' }
  const claims = [{ name: 'claim', persistentVolumeClaim: { claimName: 'c' } }]
  const world = {
    pods: [
      {
        metadata: { name: 'p', namespace: 'ns', uid: 'u' },
        spec: {
          nodeName: 'n',
          volumes: [
            { name: 't', projected: { sources: [{ serviceAccountToken: { path: 't', audience: 'vault' } }] } },
            { name: 'a', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } },
            { name: 'i', csi: { driver: 'd' } },
            { name: 'e', awsElasticBlockStore: { volumeID: 'x' } },
            ...claims,
          ],
        },
      },
      { metadata: { name: 'o', uid: 'u' }, spec: { nodeName: 'o' } },
      {
        metadata: { name: 'lost', namespace: 'ns', uid: 'u' },
        spec: { nodeName: 'n', volumes: claims.map((one) => ({ ...one, persistentVolumeClaim: { claimName: 'x' } })) },
      },
    ],
    persistentvolumeclaims: [{ metadata: { name: 'c' }, spec: { volumeName: 'v' } }],
    persistentvolumes: [{ metadata: { name: 'v' }, spec: { gcePersistentDisk: {} } }],
    'csidrivers.storage.k8s.io': [
      { metadata: { name: 'd' }, spec: { tokenRequests: [{ audience: 'csi' }] } },
      { metadata: { name: 'ebs.csi.aws.com' }, spec: { tokenRequests: [{ audience: 'ebs' }] } },
      { metadata: { name: 'pd.csi.storage.gke.io' }, spec: { tokenRequests: [{ audience: 'pd' }] } },
    ],
  }
  const ask = (object: object): Promise<string | undefined> =>
    why({ resource: 'serviceaccounts', subresource: 'token', name: 'sa', object, world })

  it("requires that a token is bound to a pod on the kubelet's node", async () => {
    assert.equal(await ask(token(bound)), undefined)
    for (const ref of [null, { ...bound, kind: 'Secret' }, { ...bound, apiVersion: 'v2' }, { ...bound, name: '' }]) {
      assert.equal(await ask(token(ref)), 'node requested token not bound to a pod')
    }
    assert.equal(await ask(token({ ...bound, uid: '' })), 'node requested token with a pod binding without a uid')
    assert.equal(
      await ask(token({ ...bound, uid: 'x' })),
      'the UID in the bound object reference (x) does not match the UID in record. The object might have been deleted and then recreated',
    )
    assert.equal(
      await ask(token({ ...bound, name: 'o' })),
      'node requested token bound to a pod scheduled on a different node',
    )
    assert.equal(await ask(token({ ...bound, name: 'gone' })), 'pod "gone" not found')
  })

  it('requires an audience that the pod, a CSI driver or the cluster allows', async () => {
    for (const audience of ['', 'vault', 'csi', 'ebs', 'pd', 'granted']) {
      assert.equal(await ask(token(bound, audience === '' ? [] : [audience])), undefined, audience)
    }
    assert.equal(await ask(token(bound, ['a', 'b'])), 'node may only request 0 or 1 audiences')
    assert.equal(
      await ask(token(bound, ['other'])),
      'audience "other" not found in pod spec volume, system:node:n is not authorized to request tokens for this audience',
    )
    assert.equal(
      await ask(token({ ...bound, name: 'lost' }, ['vault'])),
      'error validating audience "vault": persistentvolumeclaim "x" not found',
    )
  })
})

describe('NodeRestriction for certificate requests', () => {
  it('requires that a kubelet requests a certificate in the name of its node', async () => {
    const key = createKey()
    const request = (commonName: string, signerName: string): object => {
      const { pem } = createRequest({ commonName, organizations: ['system:nodes'] }, key)
      return { metadata: { name: 'r' }, spec: { request: Buffer.from(pem).toString('base64'), signerName } }
    }
    const resource = 'certificatesigningrequests.certificates.k8s.io'
    const serving = 'kubernetes.io/kubelet-serving'
    assert.equal(await why({ resource, object: request('system:node:n', serving) }), undefined)
    assert.equal(await why({ resource, object: request('eve', 'example.com/x') }), undefined)
    for (const signer of [serving, 'kubernetes.io/kube-apiserver-client-kubelet']) {
      assert.equal(
        await why({ resource, object: request('system:node:o', signer) }),
        'can only create a node CSR with CN=system:node:n',
      )
    }
    const broken = { metadata: { name: 'r' }, spec: { request: '', signerName: serving } }
    assert.match((await why({ resource, object: broken })) ?? '', /^unable to parse csr: /)
  })

  it("requires that a PodCertificateRequest is for a pod on the kubelet's node", async () => {
    const spec = {
      nodeName: 'n',
      nodeUID: 'nu',
      podName: 'p',
      podUID: 'pu',
      serviceAccountName: 'sa',
      serviceAccountUID: 'su',
    }
    const world = {
      nodes: [{ metadata: { name: 'n', uid: 'nu' } }],
      pods: [
        { metadata: { name: 'p', uid: 'pu' }, spec: { nodeName: 'n', serviceAccountName: 'sa' } },
        { metadata: { name: 'o', uid: 'pu' }, spec: { nodeName: 'o', serviceAccountName: 'sa' } },
        {
          metadata: { name: 'm', uid: 'pu', annotations: { 'kubernetes.io/config.mirror': 'x' } },
          spec: { nodeName: 'n', serviceAccountName: 'sa' },
        },
      ],
      serviceaccounts: [{ metadata: { name: 'sa', uid: 'su' } }],
    }
    const resource = 'podcertificaterequests.certificates.k8s.io'
    const ask = (change: object): Promise<string | undefined> =>
      why({ resource, object: { metadata: { name: 'r' }, spec: { ...spec, ...change } }, world })
    assert.equal(await ask({}), undefined)
    const table: readonly [change: object, message: string][] = [
      [{ nodeName: 'o' }, 'PodCertificateRequest.Spec.NodeName="o", which is not the requesting node "n"'],
      [
        { nodeUID: 'x' },
        'PodCertificateRequest for pod "ns/p" names node UID "x", inconsistent with the running node ("nu")',
      ],
      [{ podName: 'x' }, 'while retrieving pod "ns/x" named in the PodCertificateRequest: pod "x" not found'],
      [
        { podUID: 'x' },
        'PodCertificateRequest for pod "ns/p" contains pod UID ("x") which differs from running pod "pu"',
      ],
      [{ podName: 'o' }, 'pod "ns/o" is not running on node "n" named in the PodCertificateRequest'],
      [{ podName: 'm' }, 'pod "ns/m" is a mirror pod'],
      [
        { serviceAccountName: 'x' },
        'PodCertificateRequest for pod "ns/p" contains serviceAccountName ("x") that differs from running pod ("sa")',
      ],
      [
        { serviceAccountUID: 'x' },
        'PodCertificateRequest for pod "ns/p" names service account UID "x", which differs from the running service account ("su")',
      ],
    ]
    for (const [change, message] of table) assert.equal(await ask(change), message)
    assert.equal(
      await why({ resource, subresource: 'status', object: { metadata: { name: 'r' } }, oldObject: { metadata: {} } }),
      'unexpected operation UPDATE',
    )
  })
})
