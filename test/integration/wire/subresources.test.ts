/** Tests subresources over HTTP: status, scale, binding, eviction, tokens and logs. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type Got, type Json, PATCHES, refused, startWire, type Wire } from './server.ts'

let wire: Wire
let ns: string
let apps: string
let core: string
before(async () => {
  wire = await startWire()
  ns = await wire.namespace()
  apps = `/apis/apps/v1/namespaces/${ns}`
  core = `/api/v1/namespaces/${ns}`
})
after(() => wire.stop())

const merge = (path: string, body: unknown): Promise<Got> =>
  wire.request('PATCH', path, { body, headers: PATCHES.merge })
const TEMPLATE = { metadata: { labels: { app: 'web', t: 'x' } }, spec: { containers: [{ name: 'c', image: 'i' }] } }
const SELECTOR = { matchLabels: { app: 'web' }, matchExpressions: [{ key: 't', operator: 'In', values: ['x', 'y'] }] }
const makeDeployment = (name: string): Promise<Json> =>
  wire.must('POST', `${apps}/deployments`, { metadata: { name }, spec: { selector: SELECTOR, template: TEMPLATE } })
const makePod = (name: string, labels: object = {}): Promise<Json> =>
  wire.must('POST', `${core}/pods`, { metadata: { name, labels }, spec: TEMPLATE.spec })

describe('status subresource', () => {
  it('changes only the status, which the main resource cannot change', async () => {
    const made = await makeDeployment('st')
    assert.equal(made.metadata.generation, 1)
    const status = { replicas: 3, readyReplicas: 2, observedGeneration: 1 }
    const body = {
      ...made,
      metadata: { ...made.metadata, labels: { l: 'x' } },
      spec: { ...made.spec, replicas: 9 },
      status,
    }
    const put = await wire.must('PUT', `${apps}/deployments/st/status?fieldManager=s`, body)
    assert.deepEqual([put.spec.replicas, put.metadata.labels, put.metadata.generation], [1, undefined, 1])
    assert.deepEqual([put.status.replicas, put.status.readyReplicas], [3, 2])
    const entry = put.metadata.managedFields.find(({ manager }: Json) => manager === 's')
    assert.deepEqual([entry.subresource, Object.keys(entry.fieldsV1)], ['status', ['f:status']])
    const main = await wire.must('PUT', `${apps}/deployments/st`, {
      ...put,
      status: {},
      spec: { ...put.spec, replicas: 2 },
    })
    assert.deepEqual([main.status.replicas, main.spec.replicas, main.metadata.generation], [3, 2, 2])
    const marked = await wire.must('DELETE', `${apps}/deployments/st`, { propagationPolicy: 'Foreground' })
    assert.equal(marked.metadata.generation, 3)
    await merge(`${apps}/deployments/st`, { metadata: { finalizers: null } })
  })
})

describe('scale subresource', () => {
  for (const [group, plural, spec] of [
    ['apps/v1', 'deployments', { selector: SELECTOR, template: TEMPLATE }],
    ['apps/v1', 'replicasets', { selector: SELECTOR, template: TEMPLATE }],
    ['apps/v1', 'statefulsets', { selector: SELECTOR, template: TEMPLATE, serviceName: 's' }],
    ['v1', 'replicationcontrollers', { selector: { app: 'web' }, template: TEMPLATE }],
  ] as const) {
    it(`scales ${plural} by GET, PUT and PATCH`, async () => {
      const path = `${group === 'v1' ? core : apps}/${plural}`
      const parent = await wire.must('POST', path, { metadata: { name: 'sc' }, spec })
      const { uid, resourceVersion, creationTimestamp } = parent.metadata
      const scale = await wire.must('GET', `${path}/sc/scale`)
      assert.deepEqual(scale, {
        kind: 'Scale',
        apiVersion: 'autoscaling/v1',
        metadata: { name: 'sc', namespace: ns, uid, resourceVersion, creationTimestamp },
        spec: { replicas: 1 },
        status: { replicas: 0, selector: group === 'v1' ? 'app=web' : 'app=web,t in (x,y)' },
      })
      const put = await wire.must('PUT', `${path}/sc/scale`, { ...scale, spec: { replicas: 4 } })
      assert.deepEqual([put.kind, put.spec.replicas], ['Scale', 4])
      const patched = await wire.must(
        'PATCH',
        `${path}/sc/scale`,
        { spec: { replicas: 0 } },
        { headers: PATCHES.merge },
      )
      assert.deepEqual(patched.spec, {})
      const after = await wire.must('GET', `${path}/sc`)
      assert.deepEqual([after.spec.replicas, after.metadata.generation], [0, 3])
      await wire.must('DELETE', `${path}/sc`)
    })
  }
})

describe('subresources of pods', () => {
  it('binding returns a Status and copies labels of the node, and a second binding gets 409', async () => {
    const node = `${ns}-node`
    const labels = { 'topology.kubernetes.io/zone': 'z1', 'topology.kubernetes.io/region': 'r1', other: 'o' }
    await wire.must('POST', '/api/v1/nodes', { metadata: { name: node, labels } })
    await makePod('bind')
    const binding = { metadata: { name: 'bind' }, target: { kind: 'Node', name: node } }
    const bound = await wire.request('POST', `${core}/pods/bind/binding`, { body: binding })
    assert.deepEqual(
      [bound.status, bound.json()],
      [201, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }],
    )
    const pod = await wire.must('GET', `${core}/pods/bind`)
    assert.equal(pod.spec.nodeName, node)
    assert.deepEqual(pod.metadata.labels, {
      'topology.kubernetes.io/zone': 'z1',
      'topology.kubernetes.io/region': 'r1',
    })
    await refused(wire.request('POST', `${core}/pods/bind/binding`, { body: binding }), 409, {
      reason: 'Conflict',
      message: `Operation cannot be fulfilled on pods/binding "bind": pod bind is already assigned to node "${node}"`,
      details: { name: 'bind', kind: 'pods/binding' },
    })
    await wire.must('DELETE', `${core}/pods/bind`, { gracePeriodSeconds: 0 })
    await wire.must('DELETE', `/api/v1/nodes/${node}`)
  })

  it('eviction returns a Status, or 429 if the budget is exhausted', async () => {
    for (const apiVersion of ['policy/v1', 'policy/v1beta1']) {
      await makePod('evict')
      const eviction = { apiVersion, kind: 'Eviction', metadata: { name: 'evict' } }
      const gone = await wire.request('POST', `${core}/pods/evict/eviction`, { body: eviction })
      assert.deepEqual(
        [gone.status, gone.json()],
        [201, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }],
        apiVersion,
      )
    }
    await makePod('guarded', { app: 'guarded' })
    await merge(`${core}/pods/guarded/status`, {
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
    })
    await wire.must('POST', `/apis/policy/v1/namespaces/${ns}/poddisruptionbudgets`, {
      metadata: { name: 'b' },
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'guarded' } } },
    })
    await merge(`/apis/policy/v1/namespaces/${ns}/poddisruptionbudgets/b/status`, {
      status: { observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 },
    })
    const refusal = await wire.request('POST', `${core}/pods/guarded/eviction`, {
      body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'guarded' } },
    })
    assert.equal(refusal.status, 429, refusal.text)
    const { message, reason, details } = refusal.json()
    assert.equal(message, "Cannot evict pod as it would violate the pod's disruption budget.")
    assert.equal(reason, 'TooManyRequests')
    assert.deepEqual(details, {
      causes: [
        {
          reason: 'DisruptionBudget',
          message: 'The disruption budget b needs 1 healthy pods and has 1 currently',
        },
      ],
    })
    assert.equal(refusal.headers['retry-after'], undefined)
  })

  it('eviction by a kubelet is allowed for pods of its node, and sets the reason', async () => {
    const node = `${ns}-evicts`
    await wire.must('POST', '/api/v1/nodes', { metadata: { name: node } })
    await wire.must('POST', `${core}/pods`, {
      metadata: { name: 'evicted' },
      spec: { nodeName: node, containers: [{ name: 'c', image: 'i' }] },
    })
    const headers = { 'impersonate-user': `system:node:${node}`, 'impersonate-group': 'system:nodes' }
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'evicted' } }
    const tried = await wire.request('POST', `${core}/pods/evicted/eviction?dryRun=All`, { body, headers })
    assert.equal(tried.status, 201, tried.text)
    const before = await wire.must('GET', `${core}/pods/evicted`)
    assert.deepEqual([before.metadata.deletionTimestamp, before.status.conditions], [undefined, undefined])
    const got = await wire.request('POST', `${core}/pods/evicted/eviction`, { body, headers })
    assert.equal(got.status, 201, got.text)
    const { metadata, status } = await wire.must('GET', `${core}/pods/evicted`)
    assert.equal(metadata.deletionGracePeriodSeconds, 30)
    const [{ lastTransitionTime, ...condition }] = status.conditions
    assert.ok(lastTransitionTime)
    assert.deepEqual(condition, {
      type: 'DisruptionTarget',
      status: 'True',
      lastProbeTime: null,
      reason: 'EvictionByEvictionAPI',
      message: 'Eviction API: evicting',
    })
    // Fields that an eviction changes have no owner.
    assert.deepEqual(metadata.managedFields, before.metadata.managedFields)
    await wire.must('DELETE', `${core}/pods/evicted`, { gracePeriodSeconds: 0 })
    await wire.must('DELETE', `/api/v1/nodes/${node}`)
  })

  it('eviction with a resourceVersion evicts only that version', async () => {
    await makePod('versioned')
    const { metadata } = await wire.must('GET', `${core}/pods/versioned`)
    const evict = (resourceVersion: string): Promise<Got> =>
      wire.request('POST', `${core}/pods/versioned/eviction`, {
        body: { metadata: { name: 'versioned' }, deleteOptions: { preconditions: { resourceVersion } } },
      })
    await refused(evict('1'), 409, {
      reason: 'Conflict',
      message: `Operation cannot be fulfilled on Pod "versioned": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`,
    })
    assert.equal((await evict(metadata.resourceVersion)).status, 201)
  })

  it('binding and eviction require the name of the pod in the body', async () => {
    await makePod('unnamed')
    for (const [part, kind] of [
      ['binding', 'Binding'],
      ['eviction', 'Eviction'],
    ] as const) {
      await refused(wire.request('POST', `${core}/pods/unnamed/${part}`, { body: {} }), 400, {
        reason: 'BadRequest',
        message: `name in URL does not match name in ${kind} object`,
      })
    }
  })

  it('eviction is refused until the budget has a status', async () => {
    await makePod('waiting', { app: 'waiting' })
    await merge(`${core}/pods/waiting/status`, {
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
    })
    await wire.must('POST', `/apis/policy/v1/namespaces/${ns}/poddisruptionbudgets`, {
      metadata: { name: 'new' },
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'waiting' } } },
    })
    const refusal = await wire.request('POST', `${core}/pods/waiting/eviction`, {
      body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'waiting' } },
    })
    assert.equal(refusal.status, 429, refusal.text)
    assert.equal(refusal.headers['retry-after'], '10')
    const { message, details } = refusal.json()
    assert.equal(message, "Cannot evict pod as it would violate the pod's disruption budget.")
    assert.deepEqual(details, {
      causes: [
        {
          reason: 'DisruptionBudget',
          message: 'The disruption budget new is still being processed by the server.',
        },
      ],
      retryAfterSeconds: 10,
    })
  })
})

describe('tokens, logs and exec', () => {
  it('give a token at least ten minutes', async () => {
    const path = `${core}/serviceaccounts/default/token`
    const got = await wire.request('POST', path, { body: { spec: { expirationSeconds: 600 } } })
    assert.equal(got.status, 201)
    const { kind, apiVersion, status, spec } = got.json()
    assert.deepEqual([kind, apiVersion, spec.expirationSeconds], ['TokenRequest', 'authentication.k8s.io/v1', 600])
    assert.equal(status.token.split('.').length, 3)
    const whoami = await wire.must(
      'POST',
      '/apis/authentication.k8s.io/v1/selfsubjectreviews',
      {},
      { headers: { authorization: `Bearer ${status.token}` } },
    )
    assert.equal(whoami.status.userInfo.username, `system:serviceaccount:${ns}:default`)
    await refused(wire.request('POST', path, { body: { spec: { expirationSeconds: 599 } } }), 422, {
      reason: 'Invalid',
      message:
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes',
    })
  })

  it('respond with 404 for pods to the log of a missing pod', async () => {
    await refused(wire.request('GET', `${core}/pods/none/log`), 404, {
      reason: 'NotFound',
      message: 'pods "none" not found',
      details: { name: 'none', kind: 'pods' },
    })
  })

  it('need the create permission for exec, attach and portforward by WebSocket', async () => {
    await makePod('guarded-exec')
    const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${ns}`
    const resources = ['pods/exec', 'pods/attach', 'pods/portforward']
    await wire.must('POST', `${rbac}/roles`, {
      metadata: { name: 'getter' },
      rules: [{ apiGroups: [''], resources, verbs: ['get'] }],
    })
    await wire.must('POST', `${rbac}/rolebindings`, {
      metadata: { name: 'getter' },
      subjects: [{ kind: 'User', name: 'jane', apiGroup: 'rbac.authorization.k8s.io' }],
      roleRef: { kind: 'Role', name: 'getter', apiGroup: 'rbac.authorization.k8s.io' },
    })
    for (const part of ['exec?command=x&stdout=1', 'attach', 'portforward?ports=1']) {
      await refused(wire.request('GET', `${core}/pods/guarded-exec/${part}`, { as: 'jane' }), 403, {
        message: /^pods "guarded-exec" is forbidden: /,
      })
    }
  })
})
