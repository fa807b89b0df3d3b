/**
 * Tests which permissions a request needs if its verb has the effect of another, such as creation by PUT. Each row has
 * a separate user with only the permissions of the row, and upstream's response.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type Got, type Json, PATCHES, startWire, type Wire } from './server.ts'

let wire: Wire
let ns: string
let core: string
before(async () => {
  wire = await startWire()
  ns = await wire.namespace()
  core = `/api/v1/namespaces/${ns}`
})
after(() => wire.stop())

const LEASES = 'leases.coordination.k8s.io'
const ROLES = 'roles.rbac.authorization.k8s.io'

interface Request {
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

interface Row {
  /** Verbs and what they are for, `verbs resource[.group][/subresource][ name]`. */
  readonly may: readonly string[]
  /** Rights that hold everywhere, for what is in no namespace. */
  readonly everywhere?: boolean
  /** Creates prerequisites as the administrator. `name` is unique for the row. */
  readonly given?: (name: string) => Promise<unknown>
  readonly asks: (name: string) => Request
  /** The code, and for a refusal what cannot be done: `verb resource[.group][/subresource]`, or its whole text. */
  readonly gets: readonly [code: number, refusal?: string | RegExp]
  /** A check after the request. */
  readonly after?: (name: string) => Promise<void>
}

const make = (path: string, body: Json): Promise<Json> => wire.must('POST', path, body)
const apps = (rest: string): string => `/apis/apps/v1/namespaces/${ns}/${rest}`
const lease = (name: string): string => `/apis/coordination.k8s.io/v1/namespaces/${ns}/leases/${name}`
/** Another than the one that says what the row's user may. */
const role = (name: string): string => `/apis/rbac.authorization.k8s.io/v1/namespaces/${ns}/roles/${name}-new`
const named = (name: string): object => ({ metadata: { name } })
const ofKind = (apiVersion: string, kind: string, name: string): object => ({ apiVersion, kind, metadata: { name } })
const POD = { containers: [{ name: 'c', image: 'i' }] }
const pod = (name: string): Promise<Json> => make(`${core}/pods`, { ...named(name), spec: POD })
const configMap = (name: string): Promise<Json> => make(`${core}/configmaps`, named(name))
const configMaps = (rest = ''): string => `${core}/configmaps${rest}`

function deployment(name: string): Promise<Json> {
  const labels = { app: name }
  const template = { metadata: { labels }, spec: POD }
  return make(apps('deployments'), { ...named(name), spec: { selector: { matchLabels: labels }, template } })
}

/** On its way, kept by a finalizer. */
async function terminating(name: string): Promise<void> {
  await make(`${core}/configmaps`, { metadata: { name, finalizers: ['example.com/kept'] } })
  await wire.must('DELETE', configMaps(`/${name}`))
}

const gone =
  (path: (name: string) => string): NonNullable<Row['after']> =>
  async (name) => {
    assert.equal((await wire.request('GET', path(name))).status, 404)
  }
const merge = (path: string, body: Json): Request => ({ method: 'PATCH', path, body, headers: PATCHES.merge })
const apply = (path: string, body: Json): Request => ({
  method: 'PATCH',
  path: `${path}?fieldManager=m`,
  body,
  headers: PATCHES.apply,
})
const WEBSOCKET = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'sec-websocket-protocol': 'v5.channel.k8s.io',
}

const ROWS: Readonly<Record<string, Readonly<Record<string, Row>>>> = {
  'permission to create by PUT': {
    'needs create': {
      may: [`update ${LEASES}`],
      asks: (name) => ({ method: 'PUT', path: lease(name), body: named(name) }),
      gets: [403, `create ${LEASES}`],
      after: gone(lease),
    },
    'is for who may create': {
      may: [`update,create ${LEASES}`],
      asks: (name) => ({ method: 'PUT', path: lease(name), body: named(name) }),
      gets: [201],
    },
    'knows the name, which creating by POST does not': {
      may: [`update ${LEASES}`, `create ${LEASES} NAME`],
      asks: (name) => ({ method: 'PUT', path: lease(name), body: named(name) }),
      gets: [201],
    },
    'needs create of that name': {
      may: [`update ${LEASES}`, `create ${LEASES} other`],
      asks: (name) => ({ method: 'PUT', path: lease(name), body: named(name) }),
      gets: [403, `create ${LEASES}`],
    },
    'needs create even for a try': {
      may: [`update ${LEASES}`],
      asks: (name) => ({ method: 'PUT', path: `${lease(name)}?dryRun=All`, body: named(name) }),
      gets: [403, `create ${LEASES}`],
    },
    'is judged after the object is': {
      may: [`update ${LEASES}`],
      asks: (name) => ({ method: 'PUT', path: lease(name), body: { ...named(name), spec: { leaseTransitions: -1 } } }),
      gets: [422, /spec.leaseTransitions: Invalid value: -1/],
    },
    'is nothing where PUT does not create': {
      may: ['update configmaps'],
      asks: (name) => ({ method: 'PUT', path: configMaps(`/${name}`), body: named(name) }),
      gets: [404, /configmaps "\S+" not found/],
    },
    'gives nobody rights that the asker has not': {
      may: [`update,create ${ROLES}`],
      asks: (name) => ({
        method: 'PUT',
        path: role(name),
        body: { ...named(`${name}-new`), rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }] },
      }),
      gets: [403, /attempting to grant RBAC permissions not currently held/],
      after: gone(role),
    },
  },
  'permission to create by apply': {
    'needs create': {
      may: ['patch configmaps'],
      asks: (name) => apply(configMaps(`/${name}`), ofKind('v1', 'ConfigMap', name)),
      gets: [403, 'create configmaps'],
      after: gone((name) => configMaps(`/${name}`)),
    },
    'is for who may create': {
      may: ['patch,create configmaps'],
      asks: (name) => apply(configMaps(`/${name}`), ofKind('v1', 'ConfigMap', name)),
      gets: [201],
    },
    'needs patch too': {
      may: ['create,update configmaps'],
      asks: (name) => apply(configMaps(`/${name}`), ofKind('v1', 'ConfigMap', name)),
      gets: [403, 'patch configmaps'],
    },
    'of what is there needs patch alone': {
      may: ['patch configmaps'],
      given: configMap,
      asks: (name) => apply(configMaps(`/${name}`), ofKind('v1', 'ConfigMap', name)),
      gets: [200],
    },
    'is not what other patches do': {
      may: ['patch,create configmaps'],
      asks: (name) => merge(configMaps(`/${name}`), {}),
      gets: [404, /configmaps "\S+" not found/],
    },
  },
  'permission to delete': {
    'by taking the last finalizer needs update alone': {
      may: ['update configmaps'],
      given: terminating,
      asks: (name) => ({ method: 'PUT', path: configMaps(`/${name}`), body: named(name) }),
      gets: [200],
      after: gone((name) => configMaps(`/${name}`)),
    },
    'by taking the last finalizer needs patch alone': {
      may: ['patch configmaps'],
      given: terminating,
      asks: (name) => merge(configMaps(`/${name}`), { metadata: { finalizers: null } }),
      gets: [200],
      after: gone((name) => configMaps(`/${name}`)),
    },
    'is not done by saying in an update when': {
      may: ['patch configmaps'],
      given: configMap,
      asks: (name) => merge(configMaps(`/${name}`), { metadata: { deletionTimestamp: '2020-01-01T00:00:00Z' } }),
      gets: [422, /metadata.deletionTimestamp: Invalid value: "?2020-01-01T00:00:00Z"?: field is immutable/],
    },
    'is not hastened by saying in an update how soon': {
      may: ['patch configmaps'],
      given: terminating,
      asks: (name) => merge(configMaps(`/${name}`), { metadata: { deletionGracePeriodSeconds: 7 } }),
      gets: [422, /metadata.deletionGracePeriodSeconds: Invalid value: 7: field is immutable/],
    },
    'needs delete': {
      may: ['update,patch,deletecollection configmaps'],
      given: configMap,
      asks: (name) => ({ method: 'DELETE', path: configMaps(`/${name}`) }),
      gets: [403, 'delete configmaps'],
    },
    'a collection needs deletecollection': {
      may: ['delete,list configmaps'],
      asks: (name) => ({ method: 'DELETE', path: configMaps(`?labelSelector=x=${name}`) }),
      gets: [403, 'deletecollection configmaps'],
    },
    'a collection needs nothing else': {
      may: ['deletecollection configmaps'],
      given: configMap,
      asks: (name) => ({ method: 'DELETE', path: configMaps(`?fieldSelector=metadata.name=${name}`) }),
      gets: [200],
      after: gone((name) => configMaps(`/${name}`)),
    },
    'a collection of one name is still a collection': {
      may: ['delete configmaps', 'deletecollection configmaps NAME'],
      given: configMap,
      asks: (name) => ({ method: 'DELETE', path: configMaps(`?fieldSelector=metadata.name=${name}`) }),
      gets: [403, 'deletecollection configmaps'],
    },
    'by eviction needs create of pods/eviction alone': {
      may: ['create pods/eviction'],
      given: pod,
      asks: (name) => ({ method: 'POST', path: `${core}/pods/${name}/eviction`, body: named(name) }),
      gets: [201],
    },
    'by eviction is not for who may delete': {
      may: ['delete,create pods'],
      given: pod,
      asks: (name) => ({ method: 'POST', path: `${core}/pods/${name}/eviction`, body: named(name) }),
      gets: [403, 'create pods/eviction'],
    },
    'by finalizing a namespace needs update of namespaces/finalize': {
      may: ['update namespaces'],
      everywhere: true,
      given: (name) => make('/api/v1/namespaces', named(name)),
      asks: (name) => ({ method: 'PUT', path: `/api/v1/namespaces/${name}/finalize`, body: named(name) }),
      gets: [403, /cannot update resource "namespaces\/finalize" in API group "" in the namespace "row-/],
    },
  },
  'permission for parts of an object': {
    'status is not for who may update the whole': {
      may: ['update deployments.apps'],
      given: deployment,
      asks: (name) => ({ method: 'PUT', path: apps(`deployments/${name}/status`), body: named(name) }),
      gets: [403, 'update deployments.apps/status'],
    },
    'the whole is not for who may update its status': {
      may: ['patch deployments.apps/status'],
      given: deployment,
      asks: (name) => merge(apps(`deployments/${name}`), { spec: { replicas: 7 } }),
      gets: [403, 'patch deployments.apps'],
    },
    'through status only the status changes': {
      may: ['patch deployments.apps/status'],
      given: deployment,
      asks: (name) => merge(apps(`deployments/${name}/status`), { spec: { replicas: 7 }, status: { replicas: 3 } }),
      gets: [200],
      after: async (name) => {
        const { spec, status } = await wire.must('GET', apps(`deployments/${name}`))
        assert.deepEqual([spec.replicas, status.replicas], [1, 3])
      },
    },
    'status creates nothing': {
      may: ['patch,create configmaps', 'patch,create deployments.apps/status', 'create deployments.apps'],
      asks: (name) => apply(apps(`deployments/${name}/status`), ofKind('apps/v1', 'Deployment', name)),
      gets: [404, /deployments.apps "\S+" not found/],
    },
    'scale is not for who may update the whole': {
      may: ['patch,update deployments.apps'],
      given: deployment,
      asks: (name) => merge(apps(`deployments/${name}/scale`), { spec: { replicas: 7 } }),
      gets: [403, 'patch deployments.apps/scale'],
    },
    'scale needs no right to the whole': {
      may: ['patch deployments.apps/scale'],
      given: deployment,
      asks: (name) => merge(apps(`deployments/${name}/scale`), { spec: { replicas: 7 } }),
      gets: [200],
    },
    'containers are not added by who may update the pod': {
      may: ['patch pods'],
      given: pod,
      asks: (name) => merge(`${core}/pods/${name}/ephemeralcontainers`, {}),
      gets: [403, 'patch pods/ephemeralcontainers'],
    },
    'resources are not changed by who may update the pod': {
      may: ['patch pods'],
      given: pod,
      asks: (name) => merge(`${core}/pods/${name}/resize`, {}),
      gets: [403, 'patch pods/resize'],
    },
  },
  'permission to bind a pod': {
    'is not for who may create and update pods': {
      may: ['create,update,patch pods'],
      given: pod,
      asks: (name) => ({ method: 'POST', path: `${core}/pods/${name}/binding`, body: binding(name) }),
      gets: [403, 'create pods/binding'],
    },
    'needs create of pods/binding alone': {
      may: ['create pods/binding'],
      given: pod,
      asks: (name) => ({ method: 'POST', path: `${core}/pods/${name}/binding`, body: binding(name) }),
      gets: [201],
    },
    'by its name in the body needs create of bindings': {
      may: ['create pods/binding'],
      given: pod,
      asks: (name) => ({ method: 'POST', path: `${core}/bindings`, body: binding(name) }),
      gets: [403, 'create bindings'],
    },
    'by its name in the body needs nothing else': {
      may: ['create bindings'],
      given: pod,
      asks: (name) => ({ method: 'POST', path: `${core}/bindings`, body: binding(name) }),
      gets: [201],
    },
  },
  'permission to impersonate': {
    'by a token is not for who may create service accounts': {
      may: ['create,get,update serviceaccounts'],
      asks: () => ({ method: 'POST', path: `${core}/serviceaccounts/default/token`, body: {} }),
      gets: [403, 'create serviceaccounts/token'],
    },
    'by a token needs create of serviceaccounts/token alone': {
      may: ['create serviceaccounts/token'],
      asks: () => ({ method: 'POST', path: `${core}/serviceaccounts/default/token`, body: {} }),
      gets: [201],
    },
  },
  'permission to read': {
    'all of a name needs list of that name': {
      may: ['list configmaps NAME'],
      asks: (name) => ({ method: 'GET', path: configMaps(`?fieldSelector=metadata.name=${name}`) }),
      gets: [200],
    },
    'a list is not for who may get': {
      may: ['get configmaps'],
      asks: () => ({ method: 'GET', path: configMaps() }),
      gets: [403, 'list configmaps'],
    },
    'a watch is not for who may list': {
      may: ['list,get configmaps'],
      asks: () => ({ method: 'GET', path: configMaps('?watch=true') }),
      gets: [403, 'watch configmaps'],
    },
    'what went by a collection delete needs no list': {
      may: ['deletecollection configmaps'],
      asks: (name) => ({ method: 'DELETE', path: configMaps(`?labelSelector=x=${name}`) }),
      gets: [200],
    },
  },
  'permission to connect': {
    'through a pod are not for who may get it': {
      may: ['get pods'],
      given: pod,
      asks: (name) => ({ method: 'GET', path: `${core}/pods/${name}/proxy/` }),
      gets: [403, 'get pods/proxy'],
    },
    'that send something need create': {
      may: ['get pods/proxy', 'get services/proxy'],
      asks: () => ({ method: 'POST', path: `${core}/services/x/proxy/` }),
      gets: [403, 'create services/proxy'],
    },
    'into a container by WebSocket need create': {
      may: ['get pods/exec'],
      given: pod,
      asks: (name) => ({ method: 'GET', path: `${core}/pods/${name}/exec?command=ls`, headers: WEBSOCKET }),
      gets: [403, 'create pods/exec'],
    },
    'into a container by POST need create alone': {
      may: ['create pods/exec'],
      given: pod,
      asks: (name) => ({ method: 'POST', path: `${core}/pods/${name}/exec?command=ls` }),
      gets: [400, /does not have a host assigned/],
    },
    'to a node are not for who may get it': {
      may: ['get nodes'],
      everywhere: true,
      asks: () => ({ method: 'GET', path: '/api/v1/nodes/n/proxy/' }),
      gets: [403, 'get nodes/proxy'],
    },
  },
}

function binding(name: string): object {
  return { ...named(name), target: { kind: 'Node', name: 'n' } }
}

/** The rule that a right in short is. */
function ruleOf(right: string, name: string): object {
  const [verbs = '', what = '', only] = right.split(' ')
  const { group, resource } = parse(what)
  const resourceNames = only === undefined ? {} : { resourceNames: [only === 'NAME' ? name : only] }
  return { verbs: verbs.split(','), apiGroups: [group], resources: [resource], ...resourceNames }
}

function parse(what: string): { group: string; resource: string; plural: string } {
  const [whole = '', subresource] = what.split('/')
  const [plural = '', ...group] = whole.split('.')
  return { group: group.join('.'), resource: subresource === undefined ? plural : `${plural}/${subresource}`, plural }
}

/** The message of a refusal because of a missing permission, which is given in short form. */
function refusal(user: string, right: string, everywhere: boolean): string {
  const [verb, what = ''] = right.split(' ')
  const { group, resource } = parse(what)
  const where = everywhere ? 'at the cluster scope' : `in the namespace "${ns}"`
  return `User "${user}" cannot ${verb} resource "${resource}" in API group "${group}" ${where}`
}

async function allow(user: string, { may, everywhere = false }: Row): Promise<void> {
  const rbac = `/apis/rbac.authorization.k8s.io/v1${everywhere ? '' : `/namespaces/${ns}`}`
  const prefix = everywhere ? 'cluster' : ''
  await wire.must('POST', `${rbac}/${prefix}roles`, { ...named(user), rules: may.map((right) => ruleOf(right, user)) })
  await wire.must('POST', `${rbac}/${prefix}rolebindings`, {
    ...named(user),
    subjects: [{ kind: 'User', name: user, apiGroup: 'rbac.authorization.k8s.io' }],
    roleRef: { kind: everywhere ? 'ClusterRole' : 'Role', name: user, apiGroup: 'rbac.authorization.k8s.io' },
  })
}

function ask(user: string, { method, path, body, headers }: Request): Promise<Got> {
  return wire.request(method, path, { body, headers: { ...headers, 'impersonate-user': user } })
}

let count = 0
for (const [subject, rows] of Object.entries(ROWS)) {
  describe(subject, () => {
    for (const [rule, row] of Object.entries(rows)) {
      it(rule, async () => {
        const name = `row-${++count}`
        await row.given?.(name)
        await allow(name, row)
        const [code, text] = row.gets
        const got = await ask(name, row.asks(name))
        assert.equal(got.status, code, got.text)
        if (typeof text === 'string') {
          const { reason, message } = got.json()
          assert.equal(reason, 'Forbidden')
          const said = message.replace(/^.* is forbidden: /, '')
          assert.equal(said, refusal(name, text, row.everywhere ?? false))
        } else if (text !== undefined) assert.match(got.json().message, text)
        await row.after?.(name)
      })
    }
  })
}

describe('error of a refused creation by PUT or apply', () => {
  it('contains the name of the object, as the error of that verb does', async () => {
    await allow('whole', { may: [`update ${LEASES}`], asks: () => ({ method: '', path: '' }), gets: [0] })
    const got = await ask('whole', { method: 'PUT', path: lease('x'), body: named('x') })
    const why = refusal('whole', `create ${LEASES}`, false)
    assert.deepEqual(got.json(), {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: `${LEASES} "x" is forbidden: ${why}`,
      reason: 'Forbidden',
      details: { name: 'x', group: 'coordination.k8s.io', kind: 'leases' },
      code: 403,
    })
  })
})

describe('impersonation of a user', () => {
  const as = (user: string): Promise<Got> =>
    wire.request('GET', configMaps(), { as: 'jane', headers: { 'impersonate-user': user } })

  it('needs permission, and then uses the permissions of that user', async () => {
    const { code, message } = (await as('reader')).json()
    assert.equal(code, 403)
    assert.match(message, /User "jane" cannot impersonate/)
    await allow('reader', { may: ['list configmaps'], asks: () => ({ method: '', path: '' }), gets: [0] })
    const rule = { apiGroups: [''], resources: ['users'], verbs: ['impersonate'], resourceNames: ['reader'] }
    const rbac = '/apis/rbac.authorization.k8s.io/v1'
    await wire.must('POST', `${rbac}/clusterroles`, { ...named('be-reader'), rules: [rule] })
    await wire.must('POST', `${rbac}/clusterrolebindings`, {
      ...named('be-reader'),
      subjects: [{ kind: 'User', name: 'jane', apiGroup: 'rbac.authorization.k8s.io' }],
      roleRef: { kind: 'ClusterRole', name: 'be-reader', apiGroup: 'rbac.authorization.k8s.io' },
    })
    assert.equal((await as('reader')).status, 200)
    assert.equal((await as('admin')).status, 403)
  })
})
