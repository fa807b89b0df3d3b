/**
 * Tests that a stolen kubelet credential gives access only to what its node needs. There are two nodes with a pod each;
 * the credential is `system:node:n1`.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type Got, startWire, type Wire } from '../wire/server.ts'

const THIEF = { 'impersonate-user': 'system:node:n1', 'impersonate-group': ['system:nodes'] }
const MERGE = { 'content-type': 'application/merge-patch+json' }

describe('stolen credential of a node', () => {
  let wire: Wire
  let ns = ''
  let core = ''

  const asThief = (method: string, path: string, body?: unknown): Promise<Got> =>
    wire.request(method, path, { body, headers: { ...THIEF, ...(method === 'PATCH' && MERGE) } })

  before(async () => {
    wire = await startWire({ flags: ['--enable-admission-plugins=NodeRestriction'] })
    ns = await wire.namespace()
    core = `/api/v1/namespaces/${ns}`
    for (const name of ['n1', 'n2']) {
      await wire.must('POST', '/api/v1/nodes', { metadata: { name } })
      for (const kind of ['secret', 'configmap']) {
        await wire.must('POST', `${core}/${kind}s`, { metadata: { name: `${kind}-${name}` } })
      }
      await wire.must('POST', `${core}/serviceaccounts`, { metadata: { name: `account-${name}` } })
      await wire.must('POST', `${core}/pods`, {
        metadata: { name: `pod-${name}` },
        spec: {
          nodeName: name,
          serviceAccountName: `account-${name}`,
          containers: [{ name: 'c', image: 'i' }],
          volumes: [
            { name: 's', secret: { secretName: `secret-${name}` } },
            { name: 'm', configMap: { name: `configmap-${name}` } },
          ],
        },
      })
    }
    await wire.must('POST', `${core}/secrets`, { metadata: { name: 'of-nobody' } })
  })
  after(() => wire?.stop())

  it('gives access to its node', async () => {
    for (const path of [
      `${core}/secrets/secret-n1`,
      `${core}/configmaps/configmap-n1`,
      `${core}/pods/pod-n1`,
      '/api/v1/nodes/n1',
    ])
      assert.equal((await asThief('GET', path)).status, 200, path)
    const mine = await asThief('GET', '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1')
    assert.equal(mine.status, 200, mine.text)
    const status = { status: { phase: 'Running' } }
    assert.equal((await asThief('PATCH', `${core}/pods/pod-n1/status`, status)).status, 200)
    const token = { spec: { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'pod-n1', uid: '' } } }
    const pod = await wire.must('GET', `${core}/pods/pod-n1`)
    token.spec.boundObjectRef.uid = String(pod.metadata.uid)
    assert.equal((await asThief('POST', `${core}/serviceaccounts/account-n1/token`, token)).status, 201)
  })

  it('does not allow reading objects of another node, nor listing objects', async () => {
    for (const path of [
      `${core}/secrets/secret-n2`,
      `${core}/secrets/of-nobody`,
      `${core}/configmaps/configmap-n2`,
      `${core}/secrets`,
      '/api/v1/secrets',
      '/api/v1/secrets?watch=1',
      `${core}/configmaps`,
      '/apis/rbac.authorization.k8s.io/v1/clusterroles',
      '/apis/certificates.k8s.io/v1/certificatesigningrequests/x',
    ])
      assert.equal((await asThief('GET', path)).status, path.endsWith('/x') ? 404 : 403, path)
  })

  it('does not allow writing objects of another node', async () => {
    const pod = await wire.must('GET', `${core}/pods/pod-n2`)
    const bound = { kind: 'Pod', apiVersion: 'v1', name: 'pod-n2', uid: pod.metadata.uid }
    const asks: readonly [string, string, unknown][] = [
      ['PATCH', '/api/v1/nodes/n2', { metadata: { labels: { a: 'b' } } }],
      ['PATCH', '/api/v1/nodes/n2/status', { status: { phase: 'x' } }],
      ['DELETE', '/api/v1/nodes/n2', undefined],
      ['DELETE', '/api/v1/nodes/n1', undefined],
      ['PATCH', '/api/v1/nodes/n1', { metadata: { labels: { 'node-restriction.kubernetes.io/x': 'y' } } }],
      ['PATCH', '/api/v1/nodes/n1', { spec: { taints: [{ key: 'x', effect: 'NoSchedule' }] } }],
      ['PATCH', `${core}/pods/pod-n2/status`, { status: { phase: 'Failed' } }],
      ['DELETE', `${core}/pods/pod-n2`, undefined],
      ['POST', `${core}/pods/pod-n2/eviction`, { metadata: { name: 'pod-n2' } }],
      ['PATCH', `${core}/pods/pod-n1`, { metadata: { labels: { a: 'b' } } }],
      [
        'POST',
        `${core}/pods`,
        { metadata: { name: 'new' }, spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] } },
      ],
      ['POST', `${core}/pods/pod-n1/binding`, { metadata: { name: 'pod-n1' }, target: { name: 'n2' } }],
      ['POST', `${core}/serviceaccounts/account-n2/token`, { spec: { boundObjectRef: bound } }],
      ['POST', `${core}/serviceaccounts/account-n1/token`, { spec: {} }],
      ['POST', `${core}/secrets`, { metadata: { name: 'x' } }],
      ['PATCH', `${core}/secrets/secret-n1`, { data: { a: 'Yg==' } }],
      ['DELETE', `${core}/configmaps/configmap-n1`, undefined],
      [
        'POST',
        '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases',
        { metadata: { name: 'n2' }, spec: {} },
      ],
      ['POST', '/apis/storage.k8s.io/v1/csinodes', { metadata: { name: 'n2' }, spec: { drivers: [] } }],
      [
        'POST',
        '/apis/networking.k8s.io/v1/namespaces/default/networkpolicies',
        { metadata: { name: 'x' }, spec: { podSelector: {} } },
      ],
      ['POST', '/api/v1/namespaces', { metadata: { name: 'x' } }],
    ]
    for (const [method, path, body] of asks) {
      const got = await asThief(method, path, body)
      assert.equal(got.status, 403, `${method} ${path} ${JSON.stringify(body)}: ${got.text}`)
    }
  })

  it('does not allow access to containers of any node, nor impersonation', async () => {
    for (const path of [
      `${core}/pods/pod-n1/exec?command=id`,
      `${core}/pods/pod-n2/exec?command=id`,
      `${core}/pods/pod-n2/log`,
    ])
      for (const method of ['GET', 'POST']) {
        if (path.endsWith('/log') && method === 'POST') continue
        assert.equal((await asThief(method, path)).status, 403, `${method} ${path}`)
      }
    for (const path of [
      '/api/v1/nodes/n1/proxy/pods',
      '/api/v1/nodes/n2/proxy/pods',
      `${core}/pods/pod-n2/proxy/`,
      '/metrics',
    ])
      assert.equal((await asThief('GET', path)).status, 403, path)
    const review = { spec: { resourceAttributes: { verb: 'impersonate', resource: 'users', name: 'admin' } } }
    const said = await asThief('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', review)
    assert.equal(said.json().status.allowed, false)
  })
})
