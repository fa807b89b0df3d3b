/** The unusual requests that `odd-requests.ts` sends to both servers: data only. */
import type { Kind } from '#apis/kinds.ts'
import { apiVersionOf } from '#meta/kind.ts'

import type { Given, Json, KindCases } from '../refusals/case.ts'
import { everyCase } from '../refusals/index.ts'

export interface Ask {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With its query. */
  readonly path: string
  /** Text goes as it is, anything else as JSON. */
  readonly body?: unknown
  readonly type?: PatchType | undefined
  readonly accept?: string
  /** The answer is not compared: it only prepares what follows. */
  readonly prepares?: boolean
}

type PatchType = 'merge' | 'strategic' | 'json' | 'apply'

/** Requests that are sent in order to both servers. */
export interface Story {
  readonly name: string
  readonly asks: readonly Ask[]
}

const MAPS = '/api/v1/namespaces/default/configmaps'
const NEVER_KEPT = new Set(['Binding', 'TokenReview', 'SelfSubjectReview', 'SubjectAccessReview'])

export function everyStory(): Story[] {
  const kept = everyCase.filter(({ kind }) => kind.verbs.includes('get') && !NEVER_KEPT.has(kind.kind))
  return [...SINGLE, ...kept.map(storyOf)]
}

function collectionOf({ group, version, plural, namespaced }: Kind, { metadata }: Json): string {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  const { namespace = 'default' } = metadata as { namespace?: string }
  return namespaced ? `${root}/namespaces/${namespace}/${plural}` : `${root}/${plural}`
}

function storyOf({ kind, valid, given = [] }: KindCases): Story {
  const path = collectionOf(kind, valid)
  const { name } = valid['metadata'] as { name: string }
  const whole = { ...valid, apiVersion: apiVersionOf(kind), kind: kind.kind }
  const one = `${path}/${name}`
  const has = (verb: string): boolean => kind.verbs.includes(verb)
  const before = given.map(({ kind: needed, object }: Given): Ask => {
    const collection = collectionOf(needed, object)
    return { method: 'POST', path: collection, body: object, prepares: true }
  })
  const parts = kind.subresources.filter(({ verbs }) => verbs.includes('patch')).map((part) => `${one}/${part.name}`)
  return {
    name: `${kind.kind} ${apiVersionOf(kind)}`,
    asks: [
      ...before,
      ...(has('create') ? creating(path, one, whole) : []),
      ...reading(path, one),
      ...(has('update') ? updating(one, whole) : []),
      ...(has('patch') ? [one, ...parts].flatMap((at) => patching(at, whole)) : []),
      ...(has('delete') ? deleting(path, one) : []),
    ],
  }
}

function creating(path: string, one: string, body: Json): Ask[] {
  const post = (query: string, sent: unknown = body): Ask => ({ method: 'POST', path: `${path}${query}`, body: sent })
  return [
    post('?dryRun=All&fieldManager=m'),
    post('?dryRun=All&fieldValidation=Strict', { ...body, unknown: 1 }),
    post('?dryRun=All', { ...body, unknown: 1 }),
    post('?dryRun=Some&fieldValidation=Other'),
    post('?dryRun=All', { ...body, kind: 'Other' }),
    post('?dryRun=All', { ...body, apiVersion: 'v9' }),
    post('?dryRun=All', { ...body, metadata: { ...(body['metadata'] as Json), resourceVersion: '1' } }),
    post('?dryRun=All', { ...body, metadata: { ...(body['metadata'] as Json), finalizers: ['plain'] } }),
    post('?dryRun=All', { ...body, metadata: { generateName: 'Bad_' } }),
    post('?dryRun=All', { ...body, metadata: {} }),
    post('?fieldManager=m'),
    post(''),
    { method: 'POST', path: one, body },
  ]
}

function reading(path: string, one: string): Ask[] {
  const get = (at: string, accept?: string): Ask => ({ method: 'GET', path: at, ...(accept && { accept }) })
  const selected = ['metadata.name=none', 'metadata.namespace=none', 'spec.none=1', 'status.phase=x', 'spec.nodeName=x']
  return [
    get(one),
    get(`${one}?resourceVersion=0`),
    get(`${one}?resourceVersion=x`),
    get(`${one}?resourceVersion=-1`),
    get(`${one}/none`),
    get(`${one}/status`),
    get(one, 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1'),
    get(one, 'application/json;as=Table;g=meta.k8s.io;v=v1'),
    get(one, 'text/html'),
    get(`${path}/Not_A_Name`),
    get(`${path}?limit=1&continue=x`),
    get(`${path}?limit=-1&labelSelector=none%3Dx`),
    get(`${path}?labelSelector=!!`),
    get(`${path}?resourceVersionMatch=Exact`),
    get(`${path}?resourceVersionMatch=Other&resourceVersion=1`),
    get(`${path}?watch=1&resourceVersion=x`),
    get(`${path}?watch=1&sendInitialEvents=true`),
    get(`${path}?watch=1&timeoutSeconds=x`),
    ...selected.map((field) => get(`${path}?fieldSelector=${encodeURIComponent(field)}`)),
  ]
}

function updating(one: string, body: Json): Ask[] {
  const metadata = body['metadata'] as Json
  const put = (query: string, more: Json = {}): Ask => ({
    method: 'PUT',
    path: `${one}${query}`,
    body: { ...body, metadata: { ...metadata, ...more } },
  })
  return [
    put('?dryRun=All', { resourceVersion: '1' }),
    put('?dryRun=All', { resourceVersion: 'x' }),
    put('?dryRun=All', { uid: 'other' }),
    put('?dryRun=All', { name: 'other' }),
    put('?dryRun=All', { labels: { a: 'b' }, deletionTimestamp: '2026-01-01T00:00:00Z' }),
    put('?dryRun=All&fieldManager=%00', { labels: { a: 'b' } }),
    put('?dryRun=All', { creationTimestamp: '2020-01-01T00:00:00Z', generation: 99, selfLink: 'x' }),
    { method: 'PUT', path: `${one}?dryRun=All`, body: '' },
    { method: 'PUT', path: `${one}?dryRun=All`, body: '[]' },
    {
      method: 'PUT',
      path: `${one}-none`,
      body: { ...body, metadata: { ...metadata, name: `${String(metadata['name'])}-none` } },
    },
    { method: 'DELETE', path: `${one}-none`, prepares: true },
  ]
}

function patching(at: string, body: Json): Ask[] {
  const patch = (type: PatchType | undefined, sent: unknown, query = ''): Ask => {
    return { method: 'PATCH', path: `${at}?dryRun=All${query}`, body: sent, type }
  }
  const { apiVersion, kind, metadata } = body
  const named = { name: (metadata as Json)['name'] }
  const config = (more: Json): Json => ({ apiVersion, kind, metadata: named, ...more })
  const label = { metadata: { labels: { odd: 'yes' } } }
  const status = { status: { conditions: 5 } }
  return [
    patch(undefined, label),
    ...(['merge', 'strategic'] as const).flatMap((type) => [
      patch(type, label, '&fieldManager=p'),
      patch(type, { ...label, unknown: 1, metadata: { unknown: 2 } }),
      patch(type, { unknown: 1 }, '&fieldValidation=Strict'),
      patch(type, '{"metadata":{"labels":{"a":"1","a":"2"}}}', '&fieldValidation=Strict'),
      patch(type, { metadata: 'text' }),
      patch(type, { metadata: { labels: ['x'] } }),
      patch(type, { metadata: { labels: { a: 1 } } }),
      patch(type, status),
      patch(type, { metadata: { finalizers: ['plain'] } }),
      patch(type, { metadata: { resourceVersion: '0' } }),
      patch(type, { metadata: { resourceVersion: '1' } }),
      patch(type, { metadata: { name: 'other' } }),
      patch(type, { metadata: { uid: 'other' } }),
      patch(type, { kind: 'Other' }),
      patch(type, 'null'),
      patch(type, '[]'),
      patch(type, '{'),
    ]),
    patch('json', [{ op: 'add', path: '/metadata/labels', value: { odd: 'yes' } }]),
    patch('json', [{ op: 'add', path: '/metadata/unknown', value: 1 }], '&fieldValidation=Strict'),
    patch('json', [{ op: 'replace', path: '/metadata/labels', value: 5 }]),
    patch('json', [{ op: 'remove', path: '/none' }]),
    patch('json', [{ op: 'none', path: '/none' }]),
    patch('json', [{ op: 'test', path: '/kind', value: 'x' }]),
    patch('json', [{ op: 'replace', path: '', value: {} }]),
    patch('apply', config(label), '&fieldManager=a&force=true'),
    patch('apply', config(label), ''),
    patch('apply', config({ unknown: 1 }), '&fieldManager=a'),
    patch('apply', config({ status: 5 }), '&fieldManager=a'),
    patch('apply', { ...config({}), metadata: { ...named, managedFields: [] } }, '&fieldManager=a'),
    patch('apply', { ...config({}), metadata: { ...named, labels: 5 } }, '&fieldManager=a'),
    patch('apply', { ...config({}), kind: 'Other' }, '&fieldManager=a'),
    patch('apply', 'a: [', '&fieldManager=a'),
    patch('apply', '5', '&fieldManager=a'),
  ]
}

function deleting(path: string, one: string): Ask[] {
  const remove = (query: string, body?: unknown): Ask => ({
    method: 'DELETE',
    path: `${one}${query}`,
    ...(body === undefined ? {} : { body }),
  })
  const options = (more: Json): Json => ({ apiVersion: 'v1', kind: 'DeleteOptions', ...more })
  return [
    remove('', options({ preconditions: { uid: 'other' } })),
    remove('', options({ preconditions: { resourceVersion: '1' } })),
    remove('', options({ propagationPolicy: 'Other' })),
    remove('', options({ propagationPolicy: 'Orphan', orphanDependents: true })),
    remove('', options({ dryRun: ['Some'] })),
    remove('', options({ gracePeriodSeconds: -5, dryRun: ['All'] })),
    remove('', options({ kind: 'Other' })),
    remove('', '{'),
    remove('?gracePeriodSeconds=x'),
    remove('?dryRun=All&propagationPolicy=Foreground'),
    remove('?dryRun=All'),
    { method: 'DELETE', path: `${path}?dryRun=All&labelSelector=none%3Dx` },
    { method: 'DELETE', path: `${path}?fieldSelector=spec.none%3Dx` },
    remove('?propagationPolicy=Orphan'),
    { method: 'GET', path: one },
    { method: 'PATCH', path: one, type: 'merge', body: { metadata: { finalizers: null } }, prepares: true },
    remove('?gracePeriodSeconds=0'),
    remove('?gracePeriodSeconds=0', undefined),
  ]
}

const DEFAULT = '/api/v1/namespaces/default'

/** Requests that are unusual for one path only. */
const SINGLE: readonly Story[] = [
  {
    name: 'a version on what is new',
    asks: ['1', '0', 'abc', '-1', '18446744073709551616'].flatMap((resourceVersion): Ask[] => [
      { method: 'POST', path: MAPS, body: { metadata: { name: 'UPPER', resourceVersion } } },
      { method: 'POST', path: MAPS, body: { metadata: { name: 'there', resourceVersion } } },
      { method: 'POST', path: MAPS, body: { metadata: { name: 'there', resourceVersion } } },
      { method: 'POST', path: MAPS, body: { metadata: { generateName: 'drawn-', resourceVersion } }, prepares: true },
      { method: 'POST', path: `${MAPS}?dryRun=All`, body: { metadata: { name: 'not-there', resourceVersion } } },
      { method: 'PUT', path: `${MAPS}/not-there`, body: { metadata: { name: 'not-there', resourceVersion } } },
      { method: 'POST', path: '/api/v1/namespaces/default/pods', body: { metadata: { name: 'p', resourceVersion } } },
      { method: 'POST', path: '/api/v1/namespaces/gone/pods', body: { metadata: { name: 'p', resourceVersion } } },
      { method: 'DELETE', path: `${MAPS}/there`, prepares: true },
    ]),
  },
  {
    name: 'paths and methods',
    asks: [
      { method: 'GET', path: '/api/v1/none' },
      { method: 'GET', path: '/apis/none.example.com/v1/none' },
      { method: 'GET', path: '/apis/apps/v9/deployments' },
      { method: 'POST', path: '/api/v1/pods', body: {} },
      { method: 'PUT', path: `${DEFAULT}/pods`, body: {} },
      { method: 'PATCH', path: `${DEFAULT}/pods`, body: {} },
      { method: 'GET', path: `${DEFAULT}/pods/none/log` },
      { method: 'GET', path: `${DEFAULT}/pods/none/none` },
      { method: 'POST', path: `${DEFAULT}/pods/none/eviction`, body: {} },
      { method: 'POST', path: `${DEFAULT}/pods/none/binding`, body: {} },
      { method: 'POST', path: `${DEFAULT}/serviceaccounts/none/token`, body: {} },
      { method: 'PUT', path: '/api/v1/namespaces/default/finalize', body: {} },
      { method: 'GET', path: '/api/v1/componentstatuses/none' },
      { method: 'DELETE', path: '/api/v1/namespaces/default' },
      { method: 'DELETE', path: '/api/v1/namespaces' },
      { method: 'GET', path: '/api/v1/namespaces/default?export=true' },
      { method: 'GET', path: '/api/v1/watch/namespaces/default/pods?timeoutSeconds=1' },
      { method: 'GET', path: '/openapi/v2/none' },
      { method: 'GET', path: '/none' },
    ],
  },
  {
    name: 'reviews and tokens',
    asks: [
      {
        method: 'POST',
        path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews?fieldManager=m',
        body: { spec: {} },
      },
      {
        method: 'POST',
        path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews?fieldManager=m',
        body: { metadata: { name: 'x' }, spec: { nonResourceAttributes: { path: '/', verb: 'get' } } },
      },
      {
        method: 'POST',
        path: '/apis/authorization.k8s.io/v1/subjectaccessreviews?fieldManager=m&dryRun=All',
        body: { spec: { user: 'u', resourceAttributes: { resource: 'pods', verb: 'get' } } },
      },
      {
        method: 'POST',
        path: `/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews?fieldManager=m`,
        body: { spec: { user: 'u', resourceAttributes: { namespace: 'other', resource: 'pods', verb: 'get' } } },
      },
      {
        method: 'POST',
        path: '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews?fieldManager=m',
        body: { spec: {} },
      },
      { method: 'POST', path: '/apis/authentication.k8s.io/v1/selfsubjectreviews?fieldManager=m', body: {} },
      {
        method: 'POST',
        path: '/apis/authentication.k8s.io/v1/tokenreviews?fieldManager=m',
        body: { spec: { token: 'x' } },
      },
      { method: 'POST', path: `${DEFAULT}/serviceaccounts`, body: { metadata: { name: 'teller' } } },
      {
        method: 'POST',
        path: `${DEFAULT}/serviceaccounts/teller/token?fieldManager=m`,
        body: { spec: { audiences: ['a'], expirationSeconds: 600 } },
      },
      { method: 'POST', path: `${DEFAULT}/serviceaccounts/teller/token?fieldManager=m`, body: {} },
      { method: 'POST', path: `${DEFAULT}/serviceaccounts/teller/token`, body: { spec: { expirationSeconds: 5 } } },
    ],
  },
  {
    name: 'pods on their way out',
    asks: [
      { method: 'POST', path: `${DEFAULT}/pods`, body: podOf('unbound') },
      {
        method: 'PATCH',
        path: `${DEFAULT}/pods/unbound/status`,
        type: 'merge',
        body: { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } },
      },
      { method: 'PUT', path: `${DEFAULT}/pods/unbound/ephemeralcontainers`, body: podOf('unbound') },
      {
        method: 'PATCH',
        path: `${DEFAULT}/pods/unbound/ephemeralcontainers?fieldManager=e`,
        type: 'strategic',
        body: { metadata: { labels: { l: '1' } }, spec: { ephemeralContainers: [{ name: 'e', image: 'i' }] } },
      },
      {
        method: 'PATCH',
        path: `${DEFAULT}/pods/unbound/resize?fieldManager=r`,
        type: 'strategic',
        body: {
          metadata: { labels: { l: '2' } },
          spec: { containers: [{ name: 'c', resources: { requests: { cpu: '1' } } }] },
        },
      },
      { method: 'DELETE', path: `${DEFAULT}/pods/unbound` },
      { method: 'POST', path: `${DEFAULT}/pods`, body: podOf('finalized', { finalizers: ['example.com/f'] }) },
      { method: 'DELETE', path: `${DEFAULT}/pods/finalized` },
      { method: 'DELETE', path: `${DEFAULT}/pods/finalized?gracePeriodSeconds=5` },
      {
        method: 'PATCH',
        path: `${DEFAULT}/pods/finalized`,
        type: 'merge',
        body: { metadata: { finalizers: ['example.com/f', 'example.com/g'] } },
      },
      { method: 'PATCH', path: `${DEFAULT}/pods/finalized`, type: 'merge', body: { metadata: { finalizers: null } } },
    ],
  },
  {
    name: 'empty lists that are not the same as none',
    asks: [
      {
        method: 'POST',
        path: '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers?dryRun=All',
        body: {
          metadata: { name: 'h' },
          spec: {
            maxReplicas: 2,
            scaleTargetRef: { kind: 'Deployment', name: 'd', apiVersion: 'apps/v1' },
            behavior: { scaleUp: { policies: [] } },
          },
        },
      },
      { method: 'POST', path: `${DEFAULT}/pods?dryRun=All`, body: podOf('p', {}, { resources: { claims: [] } }) },
      {
        method: 'POST',
        path: '/apis/resource.k8s.io/v1/resourceslices?dryRun=All',
        body: {
          metadata: { name: 's' },
          spec: {
            driver: 'd.example.com',
            pool: { name: 'p', resourceSliceCount: 1 },
            allNodes: true,
            devices: [],
            sharedCounters: [],
          },
        },
      },
      {
        method: 'POST',
        path: '/apis/resource.k8s.io/v1/resourceslices?dryRun=All&fieldManager=m',
        body: {
          metadata: { name: 's' },
          spec: { driver: 'd.example.com', pool: { name: 'p', resourceSliceCount: 1 }, allNodes: true, devices: [] },
        },
      },
      {
        method: 'POST',
        path: '/apis/rbac.authorization.k8s.io/v1/clusterroles?dryRun=All&fieldManager=m',
        body: { metadata: { name: 'c' }, rules: [] },
      },
    ],
  },
]

function podOf(name: string, metadata: Json = {}, spec: Json = {}): Json {
  return { metadata: { name, ...metadata }, spec: { containers: [{ name: 'c', image: 'i' }], ...spec } }
}
