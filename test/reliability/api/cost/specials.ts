/**
 * Fixed requests for the cost fuzzer, which otherwise enlarges a random field: requests that once blocked the server,
 * and shapes that the fuzzer cannot generate. Each is named for its symptom.
 */
import { credentials } from '../program.ts'
import type { RawRequest } from '../raw-http.ts'
import type { CostRequest } from './requests.ts'

const json = { 'content-type': 'application/json' }
const maps = '/api/v1/namespaces/default/configmaps'
const pods = '/api/v1/namespaces/default/pods'
const cronJobs = '/apis/batch/v1/namespaces/default/cronjobs'
const roles = '/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles'

function many<T>(count: number, make: (n: number) => T): T[] {
  return Array.from({ length: count }, (_, n) => make(n))
}

function post(path: string, body: unknown, headers: Record<string, string> = {}): RawRequest {
  return { method: 'POST', path, body: JSON.stringify(body), headers: { ...json, ...headers } }
}

function patch(type: string, path: string, body: unknown): RawRequest {
  return { method: 'PATCH', path, body: JSON.stringify(body), headers: { 'content-type': `application/${type}` } }
}

function get(path: string, headers: Record<string, string> = {}): RawRequest {
  return { method: 'GET', path, headers }
}

function remove(path: string): RawRequest {
  return { method: 'DELETE', path, headers: {} }
}

const keys = (count: number): Record<string, string> => Object.fromEntries(many(count, (n) => [`k${n}`, '']))

function pod(name: string, spec: object): object {
  return { metadata: { name }, spec: { containers: [{ name: 'c', image: 'i' }], ...spec } }
}

/** Without rights but those of the role. */
const LIMITED = { ...credentials('root'), 'impersonate-user': 'limited' }

const SPECIALS: Readonly<Record<string, () => RawRequest[]>> = {
  'repeated and distinct owner references'() {
    const owner = (n: number): object => ({ apiVersion: 'v1', kind: 'Pod', name: `o${n}`, uid: `u${n % 400}` })
    const one = (n: number): object => ({ uid: String(n) })
    return [
      post(`${maps}?dryRun=All`, { metadata: { name: 'owned', ownerReferences: many(1000, owner) } }),
      post(`${maps}?dryRun=All`, { metadata: { name: 'owned', ownerReferences: many(4800, one) } }),
      post(`${maps}?dryRun=All`, {
        metadata: { name: 'owned', ownerReferences: many(9000, (n) => ({ ...owner(n), controller: true })) },
      }),
    ]
  },
  'copies of a JSON patch within a large map'() {
    const copies = many(60, (n) => ({ op: 'copy', from: '/data/k0', path: `/data/c${n}` }))
    return [
      post(maps, { metadata: { name: 'large' }, data: keys(50_000) }),
      patch('json-patch+json', `${maps}/large?dryRun=All`, copies),
      remove(`${maps}/large`),
    ]
  },
  'repeated finalizers in a strategic merge patch'() {
    const finalizers = (count: number): object => ({ metadata: { finalizers: many(count, (n) => `a.b/${n % 9000}`) } })
    return [
      post(maps, { metadata: { name: 'final' } }),
      patch('strategic-merge-patch+json', `${maps}/final?dryRun=All`, finalizers(8000)),
      patch('strategic-merge-patch+json', `${maps}/final?dryRun=All`, finalizers(60_000)),
      remove(`${maps}/final`),
    ]
  },
  'inserts of a JSON patch at the front of a long array'() {
    const first = { op: 'add', path: '/metadata/finalizers', value: many(200_000, () => 'a/b') }
    const inserts = many(9000, () => ({ op: 'add', path: '/metadata/finalizers/0', value: 'c/d' }))
    return [
      post(maps, { metadata: { name: 'front' } }),
      patch('json-patch+json', `${maps}/front?dryRun=All`, [first, ...inserts]),
      remove(`${maps}/front`),
    ]
  },
  'a short Role of very many rights'() {
    const words = (prefix: string): string[] => many(400, (n) => `${prefix}${n}`)
    const wide = { apiGroups: words('g'), resources: words('r'), verbs: words('v'), resourceNames: words('n') }
    const own = { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles'], verbs: ['create'] }
    const bindings = roles.replace('roles', 'rolebindings')
    const binding = {
      metadata: { name: 'limited' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'limited' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'limited' }],
    }
    return [
      post(roles, { metadata: { name: 'limited' }, rules: [own] }),
      post(bindings, binding),
      post(`${roles}?dryRun=All`, { metadata: { name: 'wide' }, rules: [wide] }, LIMITED),
      remove(`${bindings}/limited`),
      remove(`${roles}/limited`),
    ]
  },
  'headers and selectors'() {
    const accepts = [`a${' '.repeat(50_000)}!`, many(5000, (n) => `a/b;q=0.${n}`).join(','), '*/*;'.repeat(12_000)]
    const selectors = [
      many(8000, (n) => `k${n}`).join(','),
      `k in (${many(8000, (n) => `v${n}`).join(',')})`,
      '!'.repeat(50_000),
      `${'a'.repeat(50_000)}!`,
    ]
    return [
      ...accepts.map((accept) => get(maps, { accept })),
      ...selectors.map((text) => get(`${maps}?labelSelector=${encodeURIComponent(text).slice(0, 60_000)}`)),
      get(`${maps}?fieldSelector=${many(4000, (n) => `metadata.name!=a${n}`).join(',')}`),
      get(`${maps}?limit=1&continue=${'A'.repeat(60_000)}`),
      get(`${maps}?resourceVersion=${'9'.repeat(60_000)}`),
      get(`${maps}/${'a'.repeat(60_000)}`),
    ]
  },
  'texts that make expressions go back'() {
    const item = { key: 'k', path: `a${'/'.repeat(900_000)}b` }
    const volume = { name: 'v', configMap: { name: 'm', items: [item] } }
    const limits = { cpu: `0.${'0'.repeat(900_000)}1` }
    return [
      post(`${pods}?dryRun=All`, pod('slashes', { volumes: [volume] })),
      post(`${pods}?dryRun=All`, pod('digits', { containers: [{ name: 'c', image: 'i', resources: { limits } }] })),
      post(`${pods}?dryRun=All`, pod('name', { hostname: `${'a.'.repeat(900_000)}!` })),
      post(`${pods}?dryRun=All`, pod('image', { containers: [{ name: 'c', image: 'a/'.repeat(500_000) }] })),
    ]
  },
  'schedules, selectors and pointers of megabytes'() {
    const jobTemplate = {
      spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] } } },
    }
    const schedules = [
      `${'0-59/1,'.repeat(200_000)}1 * * * *`,
      `@every ${'1h'.repeat(700_000)}`,
      `@every 0.${'9'.repeat(1_400_000)}h`,
    ]
    const raw = [`${'a,'.repeat(700_000)}a`, `a in (${'b,'.repeat(700_000)}b)`]
    const reviews = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
    const attributes = (rawSelector: string): object => ({
      verb: 'list',
      resource: 'pods',
      labelSelector: { rawSelector },
    })
    return [
      ...schedules.map((schedule) =>
        post(`${cronJobs}?dryRun=All`, { metadata: { name: 'c' }, spec: { schedule, jobTemplate } }),
      ),
      ...raw.map((text) => post(reviews, { spec: { resourceAttributes: attributes(text) } })),
      post(maps, { metadata: { name: 'deep' } }),
      patch('json-patch+json', `${maps}/deep?dryRun=All`, [{ op: 'add', path: '/a'.repeat(700_000), value: 1 }]),
      remove(`${maps}/deep`),
    ]
  },
  'CVE-2019-11253, CVE-2019-11254: documents that unfold'() {
    const laughs = many(26, (n) => `a${n + 1}: &a${n + 1} [${`*a${n},`.repeat(9)}]`)
    const documents = [
      `a0: &a0 lol\n${laughs.join('\n')}\nmetadata: {name: x}\n`,
      `metadata: {name: x}\nx: ${'['.repeat(20_000)}\n`,
      `{"metadata":{"name":"x"},"x":${'['.repeat(1_000_000)}`,
      `{"metadata":{"name":"x"},"data":${'9'.repeat(2_000_000)}}`,
    ]
    return documents.map((body) => ({
      method: 'POST',
      path: `${maps}?dryRun=All`,
      body,
      headers: { 'content-type': body.startsWith('{') ? 'application/json' : 'application/yaml' },
    }))
  },
  'CVE-2019-1002100: patches that copy without end'() {
    const doubling = many(40, (n) => ({ op: 'copy', from: '/data', path: `/data/d${n}` }))
    return [
      post(maps, { metadata: { name: 'doubling' }, data: { a: 'x'.repeat(1000) } }),
      patch('json-patch+json', `${maps}/doubling`, doubling),
      remove(`${maps}/doubling`),
    ]
  },
  'errors that each show the same long list'() {
    const owner = (n: number): object => ({
      apiVersion: 'v1',
      kind: 'Pod',
      name: `o${n}`,
      uid: `u${n}`,
      controller: true,
    })
    return [post(`${maps}?dryRun=All`, { metadata: { name: 'owned', ownerReferences: many(30_000, owner) } })]
  },
  'a text of nothing but escaped characters'() {
    const data = { text: '<&>'.repeat(450_000) }
    return [
      post(`${maps}?dryRun=All`, { metadata: { name: 'escaped' }, data }),
      post(maps, { metadata: { name: 'escaped' }, data: { text: data.text.slice(0, 180_000) } }),
      remove(`${maps}/escaped`),
    ]
  },
  'very many finalizers, applied'() {
    const finalizers = (count: number): object => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'final', finalizers: many(count, (n) => `a.b/${n}`) },
    })
    return [
      post(maps, { metadata: { name: 'final' } }),
      patch('apply-patch+yaml', `${maps}/final?dryRun=All&fieldManager=one`, finalizers(115_000)),
      patch('apply-patch+yaml', `${maps}/final?dryRun=All&fieldManager=one`, finalizers(200_000)),
      patch('merge-patch+json', `${maps}/final?dryRun=All`, finalizers(115_000)),
      remove(`${maps}/final`),
    ]
  },
  'very many managers'() {
    const entry = (n: number): object => ({
      manager: `m${n}`,
      operation: n % 2 === 0 ? 'Update' : 'Apply',
      apiVersion: 'v1',
      time: '2026-01-02T03:04:05Z',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:data': { [`f:k${n}`]: {} } },
    })
    const object = { metadata: { name: 'managed', managedFields: many(6000, entry) }, data: keys(6000) }
    return [
      post(maps, { metadata: { name: 'managed' }, data: keys(6000) }),
      { ...post(`${maps}/managed?dryRun=All`, object), method: 'PUT' },
      remove(`${maps}/managed`),
    ]
  },
}

/** Each as a series. */
export function specialSeries(): CostRequest[][] {
  return Object.entries(SPECIALS).map(([about, make]) =>
    make().map((request) => ({ ...request, about, headers: { ...credentials('user'), ...request.headers } })),
  )
}
