/** Tests headers, methods, authentication, admission and the initial objects of a server over HTTP. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'

import { type Got, type Json, ofOurs, PATCHES, refused, startWire, type Wire } from './server.ts'

let wire: Wire
let ns: string
let maps: string
before(async () => {
  wire = await startWire()
  ns = await wire.namespace()
  maps = `/api/v1/namespaces/${ns}/configmaps`
})
after(() => wire.stop())

const get = (path: string, headers: Record<string, string> = {}): Promise<Got> => wire.request('GET', path, { headers })
const FLOW = '/apis/flowcontrol.apiserver.k8s.io/v1'
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

describe('response headers', () => {
  for (const http2 of [false, true]) {
    it(`are upstream's in every response, over HTTP/${http2 ? 2 : 1.1}`, async () => {
      const got = await wire.request('GET', maps, { http2 })
      assert.match(got.headers['audit-id'] ?? '', UUID)
      assert.equal(got.headers['cache-control'], 'no-cache, private')
      assert.match(got.headers['x-kubernetes-pf-flowschema-uid'] ?? '', UUID)
      assert.match(got.headers['x-kubernetes-pf-prioritylevel-uid'] ?? '', UUID)
      const own = await wire.request('GET', maps, { http2, headers: { 'audit-id': 'mine' } })
      assert.equal(own.headers['audit-id'], 'mine')
      const forbidden = await wire.request('GET', maps, { http2, as: 'jane' })
      assert.deepEqual([forbidden.status, forbidden.headers['x-content-type-options']], [403, 'nosniff'])
    })
  }

  it('contain the FlowSchema and priority level of a request', async () => {
    const schemas: Json[] = (await wire.must('GET', `${FLOW}/flowschemas`)).items
    const levels: Json[] = (await wire.must('GET', `${FLOW}/prioritylevelconfigurations`)).items
    const flowOf = ({ headers }: Got): (string | undefined)[] => [
      schemas.find(({ metadata }) => metadata.uid === headers['x-kubernetes-pf-flowschema-uid'])?.metadata.name,
      levels.find(({ metadata }) => metadata.uid === headers['x-kubernetes-pf-prioritylevel-uid'])?.metadata.name,
    ]
    const as = (user: string, ...groups: string[]): Record<string, string | string[]> => ({
      'impersonate-user': user,
      'impersonate-group': groups,
    })
    const node = as('system:node:n1', 'system:nodes')
    const leases = '/apis/coordination.k8s.io/v1/namespaces'
    for (const [path, headers, expected] of [
      [maps, {}, ['exempt', 'exempt']],
      ['/healthz', as('x', 'y'), ['probes', 'exempt']],
      ['/readyz', as('x', 'y'), ['probes', 'exempt']],
      ['/api/v1/nodes/n1', node, ['system-node-high', 'node-high']],
      [`${leases}/kube-node-lease/leases/n1`, node, ['system-node-high', 'node-high']],
      ['/api/v1/secrets', node, ['system-nodes', 'system']],
      [
        `${leases}/kube-system/leases/x`,
        as('system:kube-scheduler', 'x'),
        ['system-leader-election', 'leader-election'],
      ],
      [
        `${leases}/kube-system/leases/x`,
        as('system:serviceaccount:kube-system:a'),
        ['system-leader-election', 'leader-election'],
      ],
      [`${leases}/default/leases/x`, as('system:serviceaccount:default:a'), ['service-accounts', 'workload-low']],
      ['/api/v1/pods', as('system:kube-controller-manager', 'x'), ['kube-controller-manager', 'workload-high']],
      ['/api/v1/endpoints', as('system:kube-controller-manager', 'x'), ['kube-controller-manager', 'workload-high']],
      ['/api/v1/pods', as('system:kube-scheduler', 'x'), ['kube-scheduler', 'workload-high']],
      ['/api/v1/pods', as('system:serviceaccount:kube-system:a'), ['kube-system-service-accounts', 'workload-high']],
      ['/api/v1/pods', as('jane', 'x'), ['global-default', 'global-default']],
      ['/api/v1/pods', as('system:anonymous', 'system:unauthenticated'), ['global-default', 'global-default']],
    ] as const) {
      const got = await wire.request('GET', path, { headers })
      assert.deepEqual(flowOf(got), expected, `${path} ${JSON.stringify(headers)}`)
    }
    const name = `${ns}-jane`
    await wire.must('POST', `${FLOW}/flowschemas`, {
      metadata: { name },
      spec: {
        matchingPrecedence: 500,
        priorityLevelConfiguration: { name: 'workload-low' },
        rules: [
          {
            subjects: [{ kind: 'User', user: { name: 'jane' } }],
            resourceRules: [{ verbs: ['list'], apiGroups: [''], resources: ['configmaps'], namespaces: [ns] }],
          },
        ],
      },
    })
    schemas.push(await wire.must('GET', `${FLOW}/flowschemas/${name}`))
    const found = async (path: string): Promise<unknown> => flowOf(await wire.request('GET', path, { as: 'jane' }))[0]
    for (let tries = 0; tries < 500 && (await found(maps)) !== name; tries++);
    assert.equal(await found(maps), name)
    assert.equal(await found(`${maps}/x`), 'global-default')
    assert.equal(await found('/api/v1/configmaps'), 'global-default')
    assert.equal(await found('/api/v1/namespaces/default/configmaps'), 'global-default')
    await wire.must('DELETE', `${FLOW}/flowschemas/${name}`)
  })

  it('contain no FlowSchema before authentication', async () => {
    const unknown = await get(maps, { authorization: 'Bearer wrong' })
    assert.equal(unknown.status, 401)
    assert.equal(unknown.headers['x-kubernetes-pf-flowschema-uid'], undefined)
    const asOther = await wire.request('GET', maps, { as: 'jane', headers: { 'impersonate-user': 'bob' } })
    assert.equal(asOther.status, 403)
    assert.equal(asOther.headers['x-kubernetes-pf-flowschema-uid'], undefined)
  })

  it('contain Content-Encoding gzip above 128 KiB if the client accepts it', async () => {
    await wire.must('POST', maps, { metadata: { name: 'small' }, data: { a: 'x'.repeat(100 * 1024) } })
    const small = await get(`${maps}/small`, { 'accept-encoding': 'gzip' })
    assert.equal(small.headers['content-encoding'], undefined)
    await wire.must('POST', maps, { metadata: { name: 'large' }, data: { a: 'x'.repeat(200 * 1024) } })
    for (const path of [`${maps}/large`, maps]) {
      const large = await get(path, { 'accept-encoding': 'gzip' })
      assert.equal(large.headers['content-encoding'], 'gzip')
      assert.equal(large.headers['vary'], 'Accept-Encoding')
      assert.equal(gunzipSync(large.bytes).toString(), (await get(path)).text)
    }
    assert.equal((await get(`${maps}/large`)).headers['content-encoding'], undefined)
  })
})

describe('methods and timeouts of requests', () => {
  it('include the query parameter timeout, which is a Go duration', async () => {
    for (const timeout of ['32s', '5s', '1m30s', '7m12s', '100ms', '0']) {
      assert.equal((await get(`${maps}?timeout=${timeout}`)).status, 200, timeout)
    }
    for (const [timeout, why] of [
      ['abc', 'invalid duration "abc"'],
      ['5', 'missing unit in duration "5"'],
      ['5x', 'unknown unit "x" in duration "5x"'],
    ] as const) {
      await refused(get(`${maps}?timeout=${timeout}`), 400, {
        reason: 'BadRequest',
        message: `invalid timeout specified in the request URL - time: ${why}`,
      })
    }
  })

  it('lead to 504 after the timeout', async () => {
    const far = '?resourceVersion=99999999&timeout=200ms'
    const got = await get(maps + far)
    assert.equal(got.status, 504)
    assert.equal(got.json().reason, 'Timeout')
  })

  it('lead to 429 with Retry-After in plain text if too many requests are running', ofOurs, async () => {
    await using own = await startWire({ flags: ['--enable-priority-and-fairness=false', '--max-requests-inflight=1'] })
    const path = '/api/v1/namespaces/default/configmaps'
    const holding = own.request('GET', `${path}?resourceVersion=99999999&timeout=2s`)
    let got = await own.request('GET', path, { as: 'jane' })
    for (let tries = 0; got.status !== 429 && tries < 500; tries++) got = await own.request('GET', path, { as: 'jane' })
    assert.deepEqual(
      [got.status, got.text, got.headers['retry-after'], got.headers['content-type']],
      [429, 'Too many requests, please try again later.\n', '1', 'text/plain; charset=utf-8'],
    )
    assert.equal((await own.request('GET', path)).status, 200, 'who may do everything always gets in')
    assert.equal((await holding).status, 504)
  })

  it('lead to 405 for methods that a path does not support', async () => {
    for (const [method, path] of [
      ['OPTIONS', maps],
      ['PUT', maps],
      ['PATCH', maps],
      ['POST', `${maps}/x`],
      ['OPTIONS', `${maps}/x`],
      ['GET', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'],
      ['DELETE', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'],
      ['DELETE', '/api/v1/namespaces'],
      ['GET', `/api/v1/namespaces/${ns}/bindings`],
      ['DELETE', `/apis/apps/v1/namespaces/${ns}/deployments/x/status`],
      ['POST', `/apis/apps/v1/namespaces/${ns}/deployments/x/scale`],
    ] as const) {
      await refused(wire.request(method, path), 405, {
        reason: 'MethodNotAllowed',
        message: 'the server does not allow this method on the requested resource',
        details: {},
      })
    }
    for (const path of [maps, `${maps}/x`]) {
      const head = await wire.request('HEAD', path)
      assert.deepEqual([head.status, head.text], [405, ''])
    }
  })
})

describe('users of requests', () => {
  it('get 401 if they are unauthenticated and 403 if they are unauthorized', async () => {
    const unknown = await refused(get(maps, { authorization: 'Bearer wrong' }), 401, {
      reason: 'Unauthorized',
      message: 'Unauthorized',
    })
    assert.ok(!('details' in unknown))
    const jane = (path: string): Promise<Got> => wire.request('GET', path, { as: 'jane' })
    await refused(jane(`${maps}/x`), 403, {
      reason: 'Forbidden',
      message: `configmaps "x" is forbidden: User "jane" cannot get resource "configmaps" in API group "" in the namespace "${ns}"`,
      details: { name: 'x', kind: 'configmaps' },
    })
    await refused(jane('/apis/apps/v1/deployments'), 403, {
      message:
        'deployments.apps is forbidden: User "jane" cannot list resource "deployments" in API group "apps" at the cluster scope',
      details: { group: 'apps', kind: 'deployments' },
    })
    await refused(jane('/foo'), 403, { message: 'forbidden: User "jane" cannot get path "/foo"', details: {} })
    const nobody = (path: string): Promise<Got> => wire.request('GET', path, { as: 'nobody' })
    await refused(nobody(maps), 403, {
      message: `configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps" in API group "" in the namespace "${ns}"`,
    })
    for (const path of ['/healthz', '/livez', '/readyz', '/version'])
      assert.equal((await nobody(path)).status, 200, path)
    assert.equal((await nobody('/api')).status, 403)
    assert.equal((await nobody('/metrics')).status, 403)
  })

  it('need permission for impersonation', async () => {
    const whoami = async (headers: Record<string, string | string[]>): Promise<Json> =>
      (await wire.must('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {}, { headers })).status.userInfo
    assert.deepEqual(
      await whoami({
        'Impersonate-User': 'bob',
        'Impersonate-Group': ['g1', 'g2'],
        'Impersonate-Uid': '5',
        'Impersonate-Extra-A%2fB': 'v',
      }),
      { username: 'bob', uid: '5', groups: ['g1', 'g2', 'system:authenticated'], extra: { 'a/b': ['v'] } },
    )
    assert.deepEqual(await whoami({ 'Impersonate-User': 'system:serviceaccount:a:b' }), {
      username: 'system:serviceaccount:a:b',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:a', 'system:authenticated'],
    })
    await refused(get(maps, { 'Impersonate-Group': 'x' }), 400, {
      reason: 'BadRequest',
      message: /^requested .* without impersonating a user name$/,
    })
    for (const [user, mode] of [
      ['bob', 'user-info'],
      ['system:serviceaccount:a:b', 'serviceaccount'],
      ['system:node:n', 'arbitrary-node'],
    ] as const) {
      await refused(wire.request('GET', maps, { as: 'jane', headers: { 'Impersonate-User': user } }), 403, {
        message: `configmaps is forbidden: User "jane" cannot impersonate-on:${mode}:list resource "configmaps" in API group "" in the namespace "${ns}"`,
      })
    }
  })
})

describe('admission plugins', () => {
  const pod = { containers: [{ name: 'c', image: 'i' }] }

  it("reject with upstream's error texts", async () => {
    const core = `/api/v1/namespaces/${ns}`
    await wire.must('POST', `${core}/resourcequotas`, {
      metadata: { name: 'q' },
      spec: { hard: { 'count/secrets': '0' } },
    })
    await wire.must(
      'PATCH',
      `${core}/resourcequotas/q/status`,
      { status: { hard: { 'count/secrets': '0' }, used: { 'count/secrets': '0' } } },
      { headers: PATCHES.merge },
    )
    const secret = { body: { metadata: { name: 'sec' } } }
    // Upstream hears of a new quota a little later.
    for (let tries = 0; tries < 500; tries++) {
      if ((await wire.request('POST', `${core}/secrets?dryRun=All`, secret)).status === 403) break
    }
    await refused(wire.request('POST', `${core}/secrets`, secret), 403, {
      reason: 'Forbidden',
      message:
        'secrets "sec" is forbidden: exceeded quota: q, requested: count/secrets=1, used: count/secrets=0, limited: count/secrets=0',
    })
    const strict = await wire.namespace()
    const labels = {
      'pod-security.kubernetes.io/enforce': 'restricted',
      'pod-security.kubernetes.io/warn': 'restricted',
    }
    await wire.must('PATCH', `/api/v1/namespaces/${strict}`, { metadata: { labels } }, { headers: PATCHES.merge })
    const violations =
      'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
    await refused(
      wire.request('POST', `/api/v1/namespaces/${strict}/pods`, { body: { metadata: { name: 'p' }, spec: pod } }),
      403,
      { message: `pods "p" is forbidden: violates PodSecurity "restricted:latest": ${violations}` },
    )
    const template = { metadata: { labels: { a: 'b' } }, spec: pod }
    const made = await wire.request('POST', `/apis/apps/v1/namespaces/${strict}/deployments`, {
      body: { metadata: { name: 'd' }, spec: { selector: { matchLabels: { a: 'b' } }, template } },
    })
    assert.equal(made.status, 201)
    assert.deepEqual(made.all('warning'), [
      `299 - ${JSON.stringify(`would violate PodSecurity "restricted:latest": ${violations}`)}`,
    ])
    const privileged = { containers: [{ name: 'c', image: 'i', securityContext: { privileged: true } }] }
    await refused(
      wire.request('POST', `${core}/pods`, { body: { metadata: { name: 'priv' }, spec: privileged } }),
      422,
      {
        message:
          'Pod "priv" is invalid: spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy',
      },
    )
  })

  it('set defaults in new objects', async () => {
    const { spec } = await wire.must('POST', `/api/v1/namespaces/${ns}/pods`, {
      metadata: { name: 'filled' },
      spec: pod,
    })
    assert.deepEqual(
      spec.tolerations.map(({ key, tolerationSeconds }: Json) => [key, tolerationSeconds]),
      [
        ['node.kubernetes.io/not-ready', 300],
        ['node.kubernetes.io/unreachable', 300],
      ],
    )
    assert.deepEqual(
      [spec.priority, spec.preemptionPolicy, spec.serviceAccountName],
      [0, 'PreemptLowerPriority', 'default'],
    )
    assert.match(spec.volumes[0].name, /^kube-api-access-[a-z0-9]{5}$/)
    assert.equal(spec.containers[0].volumeMounts[0].mountPath, '/var/run/secrets/kubernetes.io/serviceaccount')
  })
})

describe('initial objects', () => {
  const namesOf = async (path: string): Promise<string[]> =>
    (await wire.must('GET', path)).items.map(({ metadata }: Json) => metadata.name)

  it('include namespaces, the kubernetes Service and its addresses', async () => {
    const namespaces = await namesOf('/api/v1/namespaces')
    for (const name of ['default', 'kube-node-lease', 'kube-public', 'kube-system'])
      assert.ok(namespaces.includes(name))
    const service = await wire.must('GET', '/api/v1/namespaces/default/services/kubernetes')
    assert.equal(service.spec.clusterIP, '10.0.0.1')
    assert.deepEqual(service.metadata.labels, { component: 'apiserver', provider: 'kubernetes' })
    const cidr = await wire.must('GET', '/apis/networking.k8s.io/v1/servicecidrs/kubernetes')
    assert.deepEqual(cidr.spec.cidrs, ['10.0.0.0/24'])
    assert.ok(cidr.status.conditions.some(({ type, status }: Json) => type === 'Ready' && status === 'True'))
    const address = await wire.must('GET', '/apis/networking.k8s.io/v1/ipaddresses/10.0.0.1')
    assert.deepEqual(address.spec.parentRef, { resource: 'services', namespace: 'default', name: 'kubernetes' })
    if (wire.isReference) return
    const endpoints = await wire.must('GET', '/api/v1/namespaces/default/endpoints/kubernetes')
    assert.equal(endpoints.metadata.labels['endpointslice.kubernetes.io/skip-mirror'], 'true')
    const slice = await wire.must('GET', '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes')
    assert.equal(slice.metadata.labels['kubernetes.io/service-name'], 'kubernetes')
  })

  it('include APIServices, roles, priority classes and flow control', async () => {
    const services = (await wire.must('GET', '/apis/apiregistration.k8s.io/v1/apiservices')).items
    assert.equal(services.length, 21)
    assert.ok(!services.some(({ metadata }: Json) => metadata.name === 'v1.apiregistration.k8s.io'))
    for (const { metadata, status } of services) {
      assert.equal(metadata.labels['kube-aggregator.kubernetes.io/automanaged'], 'onstart')
      assert.deepEqual([status.conditions[0].reason, status.conditions[0].status], ['Local', 'True'])
    }
    const roles = (await wire.must('GET', '/apis/rbac.authorization.k8s.io/v1/roles')).items.filter(
      ({ metadata }: Json) => metadata.labels?.['kubernetes.io/bootstrapping'] === 'rbac-defaults',
    )
    assert.equal(roles.length, 7)
    const bindings = (await wire.must('GET', '/apis/rbac.authorization.k8s.io/v1/rolebindings')).items.filter(
      ({ metadata }: Json) => metadata.labels?.['kubernetes.io/bootstrapping'] === 'rbac-defaults',
    )
    assert.equal(bindings.length, 7)
    assert.deepEqual(await namesOf('/apis/scheduling.k8s.io/v1/priorityclasses'), [
      'system-cluster-critical',
      'system-node-critical',
    ])
    const schemas = await namesOf(`${FLOW}/flowschemas`)
    assert.deepEqual(
      schemas.filter((name) => !name.startsWith('wire-')),
      [
        'catch-all',
        'exempt',
        'global-default',
        'kube-controller-manager',
        'kube-scheduler',
        'kube-system-service-accounts',
        'probes',
        'service-accounts',
        'system-leader-election',
        'system-node-high',
        'system-nodes',
      ],
    )
    assert.equal((await namesOf(`${FLOW}/prioritylevelconfigurations`)).length, 8)
    const { status } = await wire.must('GET', `${FLOW}/flowschemas/exempt`)
    const [{ lastTransitionTime: _, ...dangling }] = status.conditions
    assert.deepEqual(dangling, {
      type: 'Dangling',
      status: 'False',
      reason: 'Found',
      message: 'This FlowSchema references the PriorityLevelConfiguration object named "exempt" and it exists',
    })
  })

  it('include the ConfigMap and Leases of kube-system', async () => {
    const config = await wire.must(
      'GET',
      '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication',
    )
    assert.match(config.data['client-ca-file'], /^-----BEGIN CERTIFICATE-----/)
    await wire.must(
      'GET',
      '/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking',
    )
    const leases = await wire.must(
      'GET',
      '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?labelSelector=apiserver.kubernetes.io%2Fidentity%3Dkube-apiserver',
    )
    assert.equal(leases.items.length, 1)
    assert.match(leases.items[0].metadata.name, /^apiserver-[a-z0-9]+$/)
  })
})

describe('events and deprecated kinds', () => {
  it('are the same in both API groups', async () => {
    const core = `/api/v1/namespaces/${ns}/events`
    const events = `/apis/events.k8s.io/v1/namespaces/${ns}/events`
    await wire.must('POST', core, {
      metadata: { name: 'e' },
      involvedObject: { namespace: ns, kind: 'Pod', name: 'p' },
      reason: 'r',
      message: 'm',
      type: 'Normal',
    })
    const old = await wire.must('GET', `${core}/e`)
    const got = await wire.must('GET', `${events}/e`)
    assert.equal(got.metadata.resourceVersion, old.metadata.resourceVersion)
    assert.deepEqual([got.apiVersion, got.note, got.regarding.name], ['events.k8s.io/v1', 'm', 'p'])
    assert.equal(got.metadata.managedFields[0].apiVersion, 'v1')
    const stale = { body: { metadata: { resourceVersion: '1' } }, headers: PATCHES.merge }
    await refused(wire.request('PATCH', `${events}/e`, stale), 409, {
      details: { name: 'e', group: 'events.k8s.io', kind: 'events' },
    })
    const deleted = await wire.must('DELETE', `${events}/e`)
    assert.deepEqual([deleted.details.group, deleted.details.kind], ['events.k8s.io', 'events'])
    assert.equal((await get(`${core}/e`)).status, 404)
  })

  it('expire, and watchers get the deletion', ofOurs, async () => {
    await using own = await startWire({ flags: ['--event-ttl=1s'] })
    const path = '/api/v1/namespaces/default/events'
    const event = { metadata: { name: 'e' }, involvedObject: { namespace: 'default' } }
    const { metadata } = await own.must('POST', path, event)
    const [gone] = await own.watch(`${path}?watch=1&timeoutSeconds=9&resourceVersion=${metadata.resourceVersion}`, 1)
    assert.deepEqual([gone?.type, gone?.object.metadata.name], ['DELETED', 'e'])
    assert.equal((await own.request('GET', `${path}/e`)).status, 404)
  })

  it('cause warnings if the kind is deprecated', async () => {
    const endpoints = '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'
    const path = `/api/v1/namespaces/${ns}/endpoints`
    for (const [method, where, body] of [
      ['GET', path, undefined],
      ['GET', `${path}/none`, undefined],
      ['POST', path, { metadata: { name: 'ep' } }],
      ['DELETE', `${path}/ep`, undefined],
    ] as const) {
      assert.deepEqual((await wire.request(method, where, { body })).all('warning'), [endpoints], method)
    }
    const component = '299 - "v1 ComponentStatus is deprecated in v1.19+"'
    assert.deepEqual((await get('/api/v1/componentstatuses')).all('warning'), [component])
    assert.deepEqual((await get('/api/v1/componentstatuses/etcd-0')).all('warning'), [component])
  })

  it('cause no warnings in requests that no handler accepts', async () => {
    const one = `/api/v1/namespaces/${ns}/endpoints/none`
    for (const [method, where, options, status] of [
      ['GET', `${one}/status`, {}, 404],
      ['POST', one, { body: { metadata: { name: 'none' } } }, 405],
      ['GET', one, { headers: { accept: 'text/html' } }, 406],
      ['PATCH', one, { body: {}, headers: { 'content-type': 'application/json' } }, 415],
      ['POST', '/api/v1/componentstatuses', { body: {} }, 405],
    ] as const) {
      const got = await wire.request(method, where, options)
      assert.deepEqual([got.status, got.all('warning')], [status, []], `${method} ${where}`)
    }
  })
})
