/** Tests the AdmissionReviews that webhooks receive, operation by operation. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'

import {
  type AdmissionRequest,
  CONFIG_MAPS,
  configMap,
  type HookedPlane,
  rule,
  startHookedPlane,
} from './hooked-plane.ts'

type Json = Record<string, unknown>

const ALL = { operations: ['*'] }
const META = { apiVersion: 'meta.k8s.io/v1' }

describe('AdmissionReview that a webhook gets', () => {
  let hooked: HookedPlane
  before(async () => {
    hooked = await startHookedPlane({
      files: new Map([['tokens.csv', 'admin,admin,admin-uid,"system:masters,devs"\n']]),
    })
    hooked.respond('/see', () => ({ allowed: true }))
  })
  after(() => hooked[Symbol.asyncDispose]())
  afterEach(() => hooked.reset())

  const see = async (rules: Json, more: Json = {}): Promise<void> => {
    const { status, text } = await hooked.configure('validating', 'see', [
      { name: 'see.ex.io', rules: [rules], ...more },
    ])
    assert.equal(status, 201, text)
  }
  const seen = (): AdmissionRequest[] => hooked.requests('/see')
  const did = async (...[method, path, body, headers]: Parameters<HookedPlane['request']>): Promise<Json> => {
    const answer = await hooked.request(method, path, body, headers)
    assert.ok(answer.status < 300, `${answer.status} ${answer.text}`)
    return answer.json()
  }

  it('has fields in upstream’s order', async () => {
    await see(rule('configmaps'))
    await did('POST', `${CONFIG_MAPS}?fieldManager=fm&fieldValidation=Strict&dryRun=All`, configMap('a'))
    const [{ text, review } = assert.fail('Nobody asked')] = hooked.server.asked
    assert.ok(text.startsWith('{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"'))
    const { request } = review as { request: AdmissionRequest }
    assert.deepEqual(Object.keys(request), [
      'uid',
      'kind',
      'resource',
      'requestKind',
      'requestResource',
      'name',
      'namespace',
      'operation',
      'userInfo',
      'object',
      'oldObject',
      'dryRun',
      'options',
    ])
    const { uid, object, ...rest } = request
    assert.match(uid, /^[0-9a-f-]{36}$/)
    const kind = { group: '', version: 'v1', kind: 'ConfigMap' }
    const resource = { group: '', version: 'v1', resource: 'configmaps' }
    assert.deepEqual(rest, {
      kind,
      resource,
      requestKind: kind,
      requestResource: resource,
      name: 'a',
      namespace: 'default',
      operation: 'CREATE',
      userInfo: { username: 'admin', uid: 'admin-uid', groups: ['system:masters', 'devs', 'system:authenticated'] },
      oldObject: null,
      dryRun: true,
      options: { kind: 'CreateOptions', ...META, dryRun: ['All'], fieldManager: 'fm', fieldValidation: 'Strict' },
    })
    const { metadata, ...body } = object as { metadata: Json }
    assert.deepEqual(body, { kind: 'ConfigMap', apiVersion: 'v1', data: { a: '1' } })
    assert.deepEqual(Object.keys(metadata), ['name', 'namespace', 'uid', 'creationTimestamp', 'managedFields'])
  })

  it('contains the generated name', async () => {
    await see(rule('configmaps'))
    const { metadata } = (await did('POST', CONFIG_MAPS, { metadata: { generateName: 'g-' } })) as { metadata: Json }
    assert.equal(seen()[0]?.name, metadata['name'])
    assert.deepEqual(seen()[0]?.options, { kind: 'CreateOptions', ...META })
  })

  it('is sent for every update with the old object, also without a change', async () => {
    await did('POST', CONFIG_MAPS, configMap('b'))
    await see(rule('configmaps', ALL))
    const path = `${CONFIG_MAPS}/b`
    await did('PUT', path, configMap('b', { data: { a: '2' } }))
    const merge = { 'content-type': 'application/merge-patch+json' }
    await did('PATCH', `${path}?fieldManager=x`, { data: { a: '3' } }, merge)
    await did('PATCH', path, {}, merge)
    const apply = { 'content-type': 'application/apply-patch+yaml' }
    const applied = { apiVersion: 'v1', kind: 'ConfigMap', data: { a: '4' } }
    await did('PATCH', `${path}?fieldManager=y&force=true`, applied, apply)
    const data = (object: Json | null): unknown => object?.['data']
    assert.deepEqual(
      seen().map(({ operation, object, oldObject, options }) => [operation, data(oldObject), data(object), options]),
      [
        ['UPDATE', { a: '1' }, { a: '2' }, { kind: 'UpdateOptions', ...META }],
        ['UPDATE', { a: '2' }, { a: '3' }, { kind: 'UpdateOptions', ...META, fieldManager: 'x' }],
        ['UPDATE', { a: '3' }, { a: '3' }, { kind: 'UpdateOptions', ...META }],
        ['UPDATE', { a: '3' }, { a: '4' }, { kind: 'UpdateOptions', ...META, fieldManager: 'y' }],
      ],
    )
  })

  it('is sent for deletions, and for deletions of collections without a name', async () => {
    for (const name of ['c', 'd1', 'd2'])
      await did('POST', CONFIG_MAPS, configMap(name, { metadata: { name, labels: { l: name[0] } } }))
    await see(rule('configmaps', ALL))
    await did('DELETE', `${CONFIG_MAPS}/c`, { kind: 'DeleteOptions', apiVersion: 'v1', gracePeriodSeconds: 3 })
    await did('DELETE', `${CONFIG_MAPS}?labelSelector=l%3Dd`)
    assert.equal((await hooked.request('DELETE', `${CONFIG_MAPS}/missing`)).status, 404)
    const shown = seen().map(({ name, operation, object, oldObject, options }) => [
      name,
      operation,
      object,
      (oldObject as { metadata: Json }).metadata['name'],
      options,
    ])
    const options = { kind: 'DeleteOptions', ...META }
    assert.deepEqual(shown, [
      ['c', 'DELETE', null, 'c', { ...options, gracePeriodSeconds: 3 }],
      [undefined, 'DELETE', null, 'd1', options],
      [undefined, 'DELETE', null, 'd2', options],
    ])
  })

  it('is never sent for reads', async () => {
    await see(rule('*/*', { ...ALL, apiGroups: ['*'], apiVersions: ['*'] }))
    await did('GET', CONFIG_MAPS)
    await did('GET', '/api/v1/namespaces/default')
    assert.deepEqual(seen(), [])
  })

  it('has no namespace for cluster-scoped objects, except the name of a Namespace', async () => {
    await see(rule(['namespaces', 'nodes'], ALL))
    await did('POST', '/api/v1/nodes', { metadata: { name: 'n' } })
    const { metadata } = (await did('POST', '/api/v1/namespaces', { metadata: { name: 'space' } })) as {
      metadata: Json
    }
    await did('DELETE', '/api/v1/namespaces/space')
    assert.deepEqual(
      seen().map(({ operation, name, namespace }) => [operation, name, namespace]),
      [
        ['CREATE', 'n', undefined],
        ['CREATE', 'space', 'space'],
        ['DELETE', 'space', 'space'],
      ],
    )
    assert.deepEqual(seen()[2]?.options, { kind: 'DeleteOptions', ...META, preconditions: { uid: metadata['uid'] } })
  })

  it('contains the kind of the body for subresources', async () => {
    const spec = {
      selector: { matchLabels: { a: 'b' } },
      template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    }
    const deployments = '/apis/apps/v1/namespaces/default/deployments'
    await did('POST', deployments, { metadata: { name: 'web' }, spec })
    await did('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'robot' } })
    await did('POST', '/api/v1/namespaces/default/pods', {
      metadata: { name: 'p' },
      spec: { automountServiceAccountToken: false, containers: [{ name: 'c', image: 'i' }] },
    })
    await see(rule('*/*', { ...ALL, apiGroups: ['', 'apps'] }))
    await did(
      'PATCH',
      `${deployments}/web/scale`,
      { spec: { replicas: 3 } },
      { 'content-type': 'application/merge-patch+json' },
    )
    await did(
      'PATCH',
      `${deployments}/web/status`,
      { status: { replicas: 1 } },
      { 'content-type': 'application/merge-patch+json' },
    )
    await did('POST', '/api/v1/namespaces/default/serviceaccounts/robot/token', { spec: {} })
    await did('POST', '/api/v1/namespaces/default/pods/p/eviction', {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'p' },
    })
    const text = ({ group, version, kind, resource }: Record<string, string>): string =>
      `${group}/${version} ${kind ?? resource}`
    assert.deepEqual(
      seen().map(({ kind, resource, subResource, requestSubResource, name, operation }) => [
        operation,
        text(kind as never),
        text(resource as never),
        subResource,
        requestSubResource,
        name,
      ]),
      [
        ['UPDATE', 'autoscaling/v1 Scale', 'apps/v1 deployments', 'scale', 'scale', 'web'],
        ['UPDATE', 'apps/v1 Deployment', 'apps/v1 deployments', 'status', 'status', 'web'],
        ['CREATE', 'authentication.k8s.io/v1 TokenRequest', '/v1 serviceaccounts', 'token', 'token', 'robot'],
        ['CREATE', 'policy/v1 Eviction', '/v1 pods', 'eviction', 'eviction', 'p'],
      ],
    )
    const [scale, status, token] = seen().map(({ object }) => object as { metadata: Json; spec: Json; status: Json })
    assert.deepEqual([scale?.spec, scale?.metadata['managedFields']], [{ replicas: 3 }, undefined])
    assert.ok(status?.spec['template'] !== undefined)
    assert.equal(token?.metadata['name'], 'robot')
    assert.equal(token?.status['token'], '')
  })

  it('contains the options of connect requests', async () => {
    await did('POST', '/api/v1/namespaces/default/pods', {
      metadata: { name: 'q' },
      spec: { automountServiceAccountToken: false, containers: [{ name: 'c', image: 'i' }] },
    })
    await see(rule('pods/*', { operations: ['CONNECT'] }))
    await hooked.request('POST', '/api/v1/namespaces/default/pods/q/exec?command=ls&command=-l&container=c&stdout=true')
    await hooked.request('GET', '/api/v1/namespaces/default/pods/q/proxy/a/b')
    assert.deepEqual(
      seen().map(({ operation, kind, subResource, name, object, options }) => [
        operation,
        (kind as Json)['kind'],
        subResource,
        name,
        object,
        options,
      ]),
      [
        [
          'CONNECT',
          'PodExecOptions',
          'exec',
          'q',
          { kind: 'PodExecOptions', apiVersion: 'v1', stdout: true, container: 'c', command: ['ls', '-l'] },
          null,
        ],
        ['CONNECT', 'PodProxyOptions', 'proxy', 'q', { kind: 'PodProxyOptions', apiVersion: 'v1', path: '/a/b' }, null],
      ],
    )
  })

  it('contains the impersonated user, with keys of extra in lower case', async () => {
    await see(rule('configmaps'))
    await did('POST', CONFIG_MAPS, configMap('imp'), {
      'impersonate-user': 'jane',
      'impersonate-uid': 'u',
      'impersonate-group': 'system:masters',
      'impersonate-extra-Some-Scope': 'x',
    })
    assert.deepEqual(seen()[0]?.['userInfo'], {
      username: 'jane',
      uid: 'u',
      groups: ['system:masters', 'system:authenticated'],
      extra: { 'some-scope': ['x'] },
    })
  })

  it('contains the object in the version of the rule, unless matchPolicy is Exact', async () => {
    const spec = {
      maxReplicas: 3,
      scaleTargetRef: { kind: 'Deployment', name: 'web', apiVersion: 'apps/v1' },
      metrics: [
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 70 } } },
      ],
    }
    const path = '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers'
    const old = rule('horizontalpodautoscalers', { apiGroups: ['autoscaling'], operations: ['CREATE'] })
    await see(old)
    await did('POST', path, { metadata: { name: 'equivalent' }, spec })
    const [{ kind, resource, requestKind, requestResource, object } = assert.fail('Nobody asked')] = seen()
    assert.deepEqual(
      [kind, resource],
      [
        { group: 'autoscaling', version: 'v1', kind: 'HorizontalPodAutoscaler' },
        { group: 'autoscaling', version: 'v1', resource: 'horizontalpodautoscalers' },
      ],
    )
    assert.deepEqual(
      [requestKind, requestResource],
      [
        { group: 'autoscaling', version: 'v2', kind: 'HorizontalPodAutoscaler' },
        { group: 'autoscaling', version: 'v2', resource: 'horizontalpodautoscalers' },
      ],
    )
    assert.equal(object?.['apiVersion'], 'autoscaling/v1')
    assert.partialDeepStrictEqual(object, { spec: { targetCPUUtilizationPercentage: 70 } })
    await hooked.reset()
    await see(old, { matchPolicy: 'Exact' })
    await did('POST', path, { metadata: { name: 'exact' }, spec })
    assert.deepEqual(seen(), [])
  })

  it('is sent for every resource except webhook configurations and policies', async () => {
    await see(rule('*/*', { ...ALL, apiGroups: ['*'], apiVersions: ['*'] }))
    await did('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
      spec: { resourceAttributes: { verb: 'get', resource: 'pods' } },
    })
    await did('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {})
    await did('POST', '/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token: 'x' } })
    await did('POST', '/apis/coordination.k8s.io/v1/namespaces/default/leases', { metadata: { name: 'l' } })
    await hooked.configure('mutating', 'other', [{ name: 'see.ex.io' }])
    await hooked.configure('validating', 'other', [{ name: 'see.ex.io' }])
    const policy = {
      metadata: { name: 'p' },
      spec: { matchConstraints: { resourceRules: [rule('pods')] }, validations: [{ expression: 'true' }] },
    }
    await hooked.request('POST', '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies', policy)
    assert.deepEqual(
      seen().map(({ resource }) => (resource as Json)['resource']),
      ['selfsubjectaccessreviews', 'selfsubjectreviews', 'tokenreviews', 'leases'],
    )
  })

  it('is in v1beta1 if the webhook supports no other version', async () => {
    await see(rule('configmaps'), { admissionReviewVersions: ['v9', 'v1beta1'] })
    await did('POST', CONFIG_MAPS, configMap('beta'))
    assert.equal(hooked.server.asked[0]?.review['apiVersion'], 'admission.k8s.io/v1beta1')
  })

  it('is sent only if the selectors match', async () => {
    for (const [name, labels] of [
      ['in', { env: 'prod' }],
      ['out', {}],
    ] as const) {
      await did('POST', '/api/v1/namespaces', { metadata: { name, labels } })
    }
    const selector = { matchLabels: { env: 'prod' } }
    await see(rule(['configmaps', 'namespaces', 'nodes'], { operations: ['CREATE', 'UPDATE'] }), {
      namespaceSelector: selector,
    })
    const names = (): string[] =>
      seen()
        .map(({ name }) => name)
        .filter((name) => name !== 'kube-root-ca.crt')
    await did('POST', '/api/v1/namespaces/in/configmaps', configMap('there'))
    await did('POST', '/api/v1/namespaces/out/configmaps', configMap('elsewhere'))
    await did('POST', '/api/v1/nodes', { metadata: { name: 'always' } })
    await did('POST', '/api/v1/namespaces', { metadata: { name: 'own', labels: { env: 'prod' } } })
    await did('POST', '/api/v1/namespaces', { metadata: { name: 'unlabelled' } })
    assert.equal((await hooked.request('POST', '/api/v1/namespaces/nowhere/configmaps', configMap('x'))).status, 404)
    assert.deepEqual(names(), ['there', 'always', 'own'])
    await hooked.reset()
    await see(rule('configmaps', { operations: ['CREATE', 'UPDATE'] }), { objectSelector: selector })
    await did('POST', CONFIG_MAPS, configMap('plain'))
    await did('POST', CONFIG_MAPS, { metadata: { name: 'labelled', labels: { env: 'prod' } } })
    await did('PUT', `${CONFIG_MAPS}/labelled`, { metadata: { name: 'labelled' } })
    assert.deepEqual(names(), ['labelled', 'labelled'])
  })
})
