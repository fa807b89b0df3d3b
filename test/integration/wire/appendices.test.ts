/**
 * Tests that table columns, field selectors, verbs, gated fields and served versions of every kind equal upstream's.
 */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { type Got, type Json, refused, startWire, TABLE, type Wire } from './server.ts'

let wire: Wire
let ns: string
before(async () => {
  wire = await startWire()
  ns = await wire.namespace()
})
after(() => wire.stop())

/** Where a kind is, by `group version/plural`; those of a namespace in the one of this test. */
let placesFound: Promise<Map<string, string>> | undefined
function places(): Promise<Map<string, string>> {
  placesFound ??= findPlaces()
  return placesFound
}
async function findPlaces(): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  const groups = (await wire.must('GET', '/apis')).groups.flatMap(({ versions }: Json) => versions)
  for (const groupVersion of ['v1', ...groups.map((one: Json) => one.groupVersion)]) {
    const base = groupVersion === 'v1' ? '/api/v1' : `/apis/${groupVersion}`
    for (const { name, namespaced } of (await wire.must('GET', base)).resources) {
      found.set(`${groupVersion}/${name}`, namespaced ? `${base}/namespaces/${ns}/${name}` : `${base}/${name}`)
    }
  }
  return found
}
async function placeOf(kind: string): Promise<string> {
  const place = (await places()).get(kind)
  assert.ok(place !== undefined, `${kind} is not served`)
  return place
}

const REPLICAS = 'Name, Desired:integer, Current:integer, Ready:integer, Age, Containers*, Images*, Selector*'
const EVENTS = 'Last Seen, Type, Reason, Object, Subobject*, Source*, Message, First Seen*, Count*, Name*'
const BINDINGS = 'Name, Role, Age, Users*, Groups*, ServiceAccounts*'
const CREATED = 'Name, Created At:date'
const NAMED = 'Name, Age'
const POLICY_BINDINGS = 'Name, PolicyName, ParamRef, Age'
const HOOKS = 'Name, Webhooks:integer, Age'
const SCALERS = 'Name, Reference, Targets, MinPods, MaxPods, Replicas, Age'

const COLUMNS: Readonly<Record<string, string>> = {
  'v1/configmaps': 'Name, Data, Age',
  'v1/endpoints': 'Name, Endpoints, Age',
  'v1/events': EVENTS,
  'events.k8s.io/v1/events': EVENTS,
  'v1/limitranges': CREATED,
  'v1/namespaces': 'Name, Status, Age',
  'v1/nodes':
    'Name, Status, Roles, Age, Version, Internal-IP*, External-IP*, OS-Image*, Kernel-Version*, Container-Runtime*',
  'v1/persistentvolumeclaims':
    'Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, VolumeMode*',
  'v1/persistentvolumes':
    'Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, Reason, Age, VolumeMode*',
  'v1/pods': 'Name, Ready, Status, Restarts, Age, IP*, Node*, Nominated Node*, Readiness Gates*',
  'v1/podtemplates': 'Name, Containers, Images, Pod Labels',
  'v1/replicationcontrollers': REPLICAS,
  'v1/resourcequotas': 'Name, Request, Limit, Age',
  'v1/secrets': 'Name, Type, Data, Age',
  'v1/serviceaccounts': 'Name, Age',
  'v1/services': 'Name, Type, Cluster-IP, External-IP, Port(s), Age, Selector*',
  'v1/componentstatuses': 'Name, Status, Message, Error',
  'apps/v1/controllerrevisions': 'Name, Controller, Revision, Age',
  'apps/v1/daemonsets':
    'Name, Desired:integer, Current:integer, Ready:integer, Up-to-date:integer, Available:integer, Node Selector, Age, Containers*, Images*, Selector*',
  'apps/v1/deployments': 'Name, Ready, Up-to-date, Available, Age, Containers*, Images*, Selector*',
  'apps/v1/replicasets': REPLICAS,
  'apps/v1/statefulsets': 'Name, Ready, Age, Containers*, Images*',
  'batch/v1/cronjobs':
    'Name, Schedule, Timezone, Suspend:boolean, Active:integer, Last Schedule, Age, Containers*, Images*, Selector*',
  'batch/v1/jobs': 'Name, Status, Completions, Duration, Age, Containers*, Images*, Selector*',
  'autoscaling/v2/horizontalpodautoscalers': SCALERS,
  'autoscaling/v1/horizontalpodautoscalers': SCALERS,
  'policy/v1/poddisruptionbudgets': 'Name, Min Available, Max Unavailable, Allowed Disruptions:integer, Age',
  'networking.k8s.io/v1/ingressclasses': 'Name, Controller, Parameters, Age',
  'networking.k8s.io/v1/ingresses': 'Name, Class, Hosts, Address, Ports, Age',
  'networking.k8s.io/v1/ipaddresses': 'Name, ParentRef',
  'networking.k8s.io/v1/networkpolicies': 'Name, Pod-Selector, Age',
  'networking.k8s.io/v1/servicecidrs': 'Name, CIDRs, Age',
  'discovery.k8s.io/v1/endpointslices': 'Name, AddressType, Ports, Endpoints, Age',
  'rbac.authorization.k8s.io/v1/clusterrolebindings': BINDINGS,
  'rbac.authorization.k8s.io/v1/rolebindings': BINDINGS,
  'rbac.authorization.k8s.io/v1/clusterroles': CREATED,
  'rbac.authorization.k8s.io/v1/roles': CREATED,
  'certificates.k8s.io/v1/certificatesigningrequests': 'Name, Age, SignerName, Requestor, RequestedDuration, Condition',
  'coordination.k8s.io/v1/leases': 'Name, Holder, Age',
  'node.k8s.io/v1/runtimeclasses': 'Name, Handler, Age',
  'scheduling.k8s.io/v1/priorityclasses': 'Name, Value:integer, Global-Default:boolean, Age, PreemptionPolicy',
  'storage.k8s.io/v1/csidrivers':
    'Name, AttachRequired:boolean, PodInfoOnMount:boolean, StorageCapacity:boolean, TokenRequests, RequiresRepublish:boolean, Modes, Age',
  'storage.k8s.io/v1/csinodes': 'Name, Drivers:integer, Age',
  'storage.k8s.io/v1/csistoragecapacities': CREATED,
  'storage.k8s.io/v1/storageclasses': 'Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age',
  'storage.k8s.io/v1/volumeattachments': 'Name, Attacher, PV, Node, Attached:boolean, Age',
  'storage.k8s.io/v1/volumeattributesclasses': 'Name, DriverName, Age',
  'admissionregistration.k8s.io/v1/validatingadmissionpolicies': 'Name, Validations:integer, ParamKind, Age',
  'admissionregistration.k8s.io/v1/mutatingadmissionpolicies': 'Name, Mutations:integer, ParamKind, Age',
  'admissionregistration.k8s.io/v1/validatingadmissionpolicybindings': POLICY_BINDINGS,
  'admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings': POLICY_BINDINGS,
  'admissionregistration.k8s.io/v1/validatingwebhookconfigurations': HOOKS,
  'admissionregistration.k8s.io/v1/mutatingwebhookconfigurations': HOOKS,
  'apiregistration.k8s.io/v1/apiservices': 'Name, Service, Available, Age',
  'apiextensions.k8s.io/v1/customresourcedefinitions': CREATED,
  'resource.k8s.io/v1/deviceclasses': NAMED,
  'resource.k8s.io/v1/resourceclaimtemplates': NAMED,
  'resource.k8s.io/v1/resourceclaims': 'Name, State, Age',
  'resource.k8s.io/v1/resourceslices': 'Name, Node, Driver, Pool, Age',
  'flowcontrol.apiserver.k8s.io/v1/flowschemas':
    'Name, PriorityLevel, MatchingPrecedence, DistinguisherMethod, Age, MissingPL',
  'flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations':
    'Name, Type, NominalConcurrencyShares, Queues, HandSize, QueueLengthLimit, Age',
}

describe('kubectl table columns', () => {
  for (const [kind, expected] of Object.entries(COLUMNS)) {
    it(`are upstream's for ${kind}`, async () => {
      const got = await wire.request('GET', await placeOf(kind), { headers: { accept: TABLE } })
      assert.equal(got.status, 200, got.text)
      const columns = got.json().columnDefinitions.map(({ name, type, priority }: Json) => {
        const typed = type === 'string' ? '' : `:${type}`
        return `${name}${typed}${priority === 0 ? '' : '*'}`
      })
      assert.equal(columns.join(', '), expected)
    })
  }

  it('are in this table for every listable kind', async () => {
    const all = await places()
    const listed = [...all.keys()].filter(
      (kind) =>
        !kind
          .replace(/^[^/]+\.[^/]+\//, '')
          .slice(3)
          .includes('/'),
    )
    const without = /\/(?:bindings|tokenreviews|\w+reviews)$/
    assert.deepEqual(
      listed
        .filter((kind) => !without.test(kind) && !/\/\w+\/\w+$/.test(kind.replace(/^.*?(?=v\d)/, '')))
        .filter((kind) => !(kind in COLUMNS)),
      [],
    )
  })
})

const FIELDS: Readonly<Record<string, string>> = {
  'v1/pods':
    'metadata.name metadata.namespace spec.nodeName spec.host spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork status.phase status.podIP status.podIPs status.nominatedNodeName',
  'v1/nodes': 'metadata.name spec.unschedulable',
  'v1/replicationcontrollers': 'metadata.name metadata.namespace status.replicas',
  'v1/events':
    'metadata.name metadata.namespace involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid involvedObject.apiVersion involvedObject.resourceVersion involvedObject.fieldPath reason reportingComponent source type',
  'events.k8s.io/v1/events':
    'metadata.name metadata.namespace regarding.kind regarding.namespace regarding.name regarding.uid regarding.apiVersion regarding.resourceVersion regarding.fieldPath reason reportingController type',
  'v1/namespaces': 'metadata.name status.phase',
  'v1/secrets': 'metadata.name metadata.namespace type',
  'v1/services': 'metadata.name metadata.namespace spec.clusterIP spec.type',
  'batch/v1/jobs': 'metadata.name metadata.namespace status.successful',
  'certificates.k8s.io/v1/certificatesigningrequests': 'metadata.name spec.signerName',
  'resource.k8s.io/v1/resourceslices': 'metadata.name spec.nodeName spec.driver',
}

const OTHER_WORDS: Readonly<Record<string, string>> = {
  'batch/v1/jobs': 'field label "x" not supported for Job',
  'resource.k8s.io/v1/resourceslices': 'field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: x',
}

describe('supported field selectors', () => {
  const select = async (kind: string, field: string): Promise<Got> =>
    wire.request('GET', `${await placeOf(kind)}?fieldSelector=${encodeURIComponent(`${field}=x`)}`)

  for (const [kind, fields] of Object.entries(FIELDS)) {
    it(`are upstream's for ${kind}`, async () => {
      for (const field of fields.split(' ')) {
        const got = await select(kind, field)
        assert.equal(got.status, 200, `${field}: ${got.text}`)
      }
      const message = OTHER_WORDS[kind] ?? 'field label not supported: x'
      await refused(select(kind, 'x'), 400, { reason: 'BadRequest', message })
    })
  }

  it('are name and namespace for all other kinds', async () => {
    for (const kind of Object.keys(COLUMNS)) {
      if (kind in FIELDS || kind === 'v1/componentstatuses') continue
      assert.equal((await select(kind, 'metadata.name')).status, 200, kind)
      const message = '"x" is not a known field selector: only "metadata.name", "metadata.namespace"'
      await refused(select(kind, 'x'), 400, { reason: 'BadRequest', message })
    }
  })
})

/** One of each kind that differs; enough to be valid. */
const TEMPLATE = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } }
const CLAIM = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
const HOOK = {
  name: 'w.example.com',
  clientConfig: { url: 'https://127.0.0.1:1/x' },
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
}
const MATCH = {
  resourceRules: [{ apiGroups: ['nope.example.com'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['x'] }],
}
const OBJECTS: Readonly<Record<string, object>> = {
  'v1/configmaps': {},
  'v1/persistentvolumes': {
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/x' } },
  },
  'v1/persistentvolumeclaims': { spec: CLAIM },
  'v1/pods': { spec: TEMPLATE.spec },
  'v1/podtemplates': { template: TEMPLATE },
  'v1/resourcequotas': { spec: {} },
  'v1/services': { spec: { ports: [{ port: 1 }] } },
  'v1/serviceaccounts': {},
  'v1/endpoints': {},
  'v1/limitranges': { spec: { limits: [] } },
  'v1/events': { involvedObject: {} },
  'resource.k8s.io/v1/deviceclasses': { spec: {} },
  'resource.k8s.io/v1/resourceclaims': { spec: {} },
  'resource.k8s.io/v1/resourceclaimtemplates': { spec: { spec: {} } },
  'resource.k8s.io/v1/resourceslices': {
    spec: { driver: 'd.example.com', pool: { name: 'p', generation: 1, resourceSliceCount: 1 }, allNodes: true },
  },
  'storage.k8s.io/v1/csidrivers': { spec: {} },
  'storage.k8s.io/v1/csinodes': { spec: { drivers: [] } },
  'storage.k8s.io/v1/csistoragecapacities': { storageClassName: 's' },
  'storage.k8s.io/v1/storageclasses': { provisioner: 'p.example.com' },
  'storage.k8s.io/v1/volumeattachments': {
    spec: { attacher: 'a.example.com', nodeName: 'n', source: { persistentVolumeName: 'pv' } },
  },
  'storage.k8s.io/v1/volumeattributesclasses': { driverName: 'd.example.com', parameters: { a: 'b' } },
  'coordination.k8s.io/v1/leases': {},
  'node.k8s.io/v1/runtimeclasses': { handler: 'h' },
  'rbac.authorization.k8s.io/v1/roles': {},
  'rbac.authorization.k8s.io/v1/clusterroles': {},
  'rbac.authorization.k8s.io/v1/rolebindings': {
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
  },
  'rbac.authorization.k8s.io/v1/clusterrolebindings': {
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
  },
  'policy/v1/poddisruptionbudgets': {},
  'admissionregistration.k8s.io/v1/validatingwebhookconfigurations': { webhooks: [] },
  'admissionregistration.k8s.io/v1/mutatingwebhookconfigurations': { webhooks: [{ ...HOOK, rules: [] }] },
  'admissionregistration.k8s.io/v1/validatingadmissionpolicies': {
    spec: { matchConstraints: MATCH, validations: [{ expression: 'true' }] },
  },
  'admissionregistration.k8s.io/v1/validatingadmissionpolicybindings': {
    spec: { policyName: 'none', validationActions: ['Deny'] },
  },
  'admissionregistration.k8s.io/v1/mutatingadmissionpolicies': {
    spec: {
      matchConstraints: MATCH,
      reinvocationPolicy: 'Never',
      mutations: [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression: 'Object{}' } }],
    },
  },
  'admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings': { spec: { policyName: 'none' } },
}

const ANSWERS_OBJECT =
  `v1/persistentvolumes v1/persistentvolumeclaims v1/pods v1/podtemplates v1/resourcequotas v1/services
  v1/serviceaccounts resource.k8s.io/v1/deviceclasses resource.k8s.io/v1/resourceclaims
  resource.k8s.io/v1/resourceclaimtemplates resource.k8s.io/v1/resourceslices storage.k8s.io/v1/csidrivers
  storage.k8s.io/v1/csinodes storage.k8s.io/v1/storageclasses storage.k8s.io/v1/volumeattachments
  storage.k8s.io/v1/volumeattributesclasses`.split(/\s+/)
const PUT_CREATES = `coordination.k8s.io/v1/leases v1/endpoints v1/events v1/limitranges v1/services
  node.k8s.io/v1/runtimeclasses rbac.authorization.k8s.io/v1/roles rbac.authorization.k8s.io/v1/rolebindings
  rbac.authorization.k8s.io/v1/clusterroles rbac.authorization.k8s.io/v1/clusterrolebindings`.split(/\s+/)
const PUT_NEEDS_VERSION = `admissionregistration.k8s.io/v1/validatingwebhookconfigurations
  admissionregistration.k8s.io/v1/mutatingwebhookconfigurations
  admissionregistration.k8s.io/v1/validatingadmissionpolicies
  admissionregistration.k8s.io/v1/validatingadmissionpolicybindings
  admissionregistration.k8s.io/v1/mutatingadmissionpolicies admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings
  coordination.k8s.io/v1/leases node.k8s.io/v1/runtimeclasses policy/v1/poddisruptionbudgets storage.k8s.io/v1/csidrivers
  storage.k8s.io/v1/csinodes storage.k8s.io/v1/csistoragecapacities storage.k8s.io/v1/volumeattachments`.split(/\s+/)

describe('verbs and status codes of a kind', () => {
  for (const [kind, rest] of Object.entries(OBJECTS)) {
    it(`are upstream's for ${kind}`, async () => {
      const place = await placeOf(kind)
      const name = kind.endsWith('csidrivers') ? `${ns}.example.com` : `${ns}-c`
      const path = `${place}/${name}`
      const object = { metadata: { name, ...(place.includes('/namespaces/') && { namespace: ns }) }, ...rest }
      if (kind === 'v1/events') Object.assign(object, { involvedObject: { namespace: ns } })
      const put = await wire.request('PUT', path, { body: object })
      if (PUT_CREATES.includes(kind)) assert.equal(put.status, 201, put.text)
      else {
        assert.equal(put.status, 404, put.text)
        await wire.must('POST', place, object)
      }
      const { metadata, ...stored } = await wire.must('GET', path)
      const { resourceVersion: _, ...unversioned } = metadata
      const again = await wire.request('PUT', path, { body: { ...stored, metadata: unversioned } })
      if (PUT_NEEDS_VERSION.includes(kind)) {
        assert.equal(again.status, 422, again.text)
        assert.match(
          again.json().message,
          /metadata\.resourceVersion: Invalid value: 0: must be specified for an update$/,
        )
      } else assert.equal(again.status, 200, again.text)
      const gone = (await wire.request('DELETE', path)).json()
      assert.equal(gone.kind !== 'Status', ANSWERS_OBJECT.includes(kind), JSON.stringify(gone))
      if (gone.metadata.finalizers !== undefined) {
        await wire.must(
          'PATCH',
          path,
          { metadata: { finalizers: null } },
          { headers: { 'content-type': 'application/merge-patch+json' } },
        )
      }
    })
  }

  it('equal those of upstream for kinds that can only be created or only be read', async () => {
    const base = '/apis/authorization.k8s.io/v1'
    for (const path of [
      `/api/v1/namespaces/${ns}/bindings`,
      '/apis/authentication.k8s.io/v1/tokenreviews',
      '/apis/authentication.k8s.io/v1/selfsubjectreviews',
      `${base}/subjectaccessreviews`,
      `${base}/selfsubjectaccessreviews`,
      `${base}/selfsubjectrulesreviews`,
      `${base}/namespaces/${ns}/localsubjectaccessreviews`,
    ]) {
      assert.equal((await wire.request('GET', path)).status, 405, path)
      assert.equal((await wire.request('POST', path, { body: '{' })).status, 400, path)
    }
    assert.equal((await wire.request('GET', '/api/v1/componentstatuses')).status, 200)
    assert.equal((await wire.request('POST', '/api/v1/componentstatuses', { body: {} })).status, 405)
    assert.equal((await wire.request('GET', '/api/v1/componentstatuses?watch=1')).status, 405)
  })
})

describe('fields whose feature gate is off', () => {
  const make = async (kind: string, object: object): Promise<Json> =>
    wire.must('POST', `${await placeOf(kind)}?dryRun=All&fieldValidation=Strict`, {
      metadata: { name: 'd' },
      ...object,
    })

  it('are dropped from StatefulSets, Leases and claims', async () => {
    const { spec } = await make('apps/v1/statefulsets', {
      spec: {
        selector: { matchLabels: { a: 'b' } },
        template: TEMPLATE,
        updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 1, maxUnavailable: 2 } },
      },
    })
    assert.deepEqual(spec.updateStrategy, { type: 'RollingUpdate', rollingUpdate: { partition: 1 } })
    const lease = await make('coordination.k8s.io/v1/leases', {
      spec: { holderIdentity: 'h', strategy: 'OldestEmulationVersion', preferredHolder: 'p' },
    })
    assert.deepEqual(lease.spec, { holderIdentity: 'h' })
    const claim = await make('v1/persistentvolumeclaims', {
      spec: { ...CLAIM, dataSourceRef: { apiGroup: 'x.example.com', kind: 'X', name: 'x', namespace: 'other' } },
    })
    assert.ok(!('dataSourceRef' in claim.spec))
  })

  it('are dropped from Pods, or rejected', async () => {
    const { spec } = await make('v1/pods', {
      spec: {
        containers: [{ name: 'c', image: 'i', lifecycle: { stopSignal: 'SIGUSR1' } }],
        os: { name: 'linux' },
        schedulingGroup: { podGroupName: 'g' },
        volumes: [
          {
            name: 'v',
            projected: { sources: [{ clusterTrustBundle: { name: 'x', path: 'p' } }, { configMap: { name: 'c' } }] },
          },
        ],
      },
    })
    assert.ok(!('schedulingGroup' in spec))
    assert.ok(!('lifecycle' in spec.containers[0]))
    assert.ok(!JSON.stringify(spec.volumes[0]).includes('clusterTrustBundle'))
    const tolerations = [{ key: 'k', operator: 'Lt', value: '5' }]
    await refused(
      wire.request('POST', await placeOf('v1/pods'), {
        body: { metadata: { name: 'd' }, spec: { ...TEMPLATE.spec, tolerations } },
      }),
      422,
      {
        message:
          'Pod "d" is invalid: spec.tolerations[0].operator: Unsupported value: "Lt": supported values: "Equal", "Exists", "Lt", "Gt"',
      },
    )
  })

  it('are dropped from autoscalers, drivers and slices', async () => {
    const scaler = {
      minReplicas: 0,
      maxReplicas: 3,
      scaleTargetRef: { kind: 'Deployment', name: 'd', apiVersion: 'apps/v1' },
    }
    const metrics = [
      {
        type: 'Object',
        object: {
          describedObject: { kind: 'X', name: 'x' },
          metric: { name: 'm' },
          target: { type: 'Value', value: '1' },
        },
      },
    ]
    await refused(
      wire.request('POST', await placeOf('autoscaling/v2/horizontalpodautoscalers'), {
        body: { metadata: { name: 'd' }, spec: { ...scaler, metrics } },
      }),
      422,
      {
        message:
          'HorizontalPodAutoscaler.autoscaling "d" is invalid: spec.minReplicas: Invalid value: 0: must be greater than or equal to 1',
      },
    )
    const driver = await make('storage.k8s.io/v1/csidrivers', { spec: { preventPodSchedulingIfMissing: true } })
    assert.ok(!('preventPodSchedulingIfMissing' in driver.spec))
    const device = {
      name: 'd',
      attributes: { a: { int: 1 }, l: { ints: [1, 2] } },
      nodeAllocatableResourceMappings: { cpu: { allocationMultiplier: '1' } },
    }
    const slice = await make('resource.k8s.io/v1/resourceslices', {
      spec: {
        driver: 'd.example.com',
        pool: { name: 'p', generation: 1, resourceSliceCount: 1 },
        allNodes: true,
        devices: [device],
      },
    }).catch((error: unknown) => error)
    assert.ok(!String(slice).includes('nodeAllocatableResourceMappings'))
    assert.ok(!('nodeAllocatableResourceMappings' in (slice.spec?.devices[0] ?? {})), String(slice))
  })
})

describe('API versions served by default', () => {
  it('are the stable ones', async () => {
    const { groups } = await wire.must('GET', '/apis')
    const served = groups.flatMap(({ versions }: Json) => versions.map((one: Json) => one.groupVersion))
    assert.deepEqual(
      (['v1', ...served] as string[]).toSorted(),
      `v1 admissionregistration.k8s.io/v1 apiextensions.k8s.io/v1 apiregistration.k8s.io/v1 apps/v1 authentication.k8s.io/v1
       authorization.k8s.io/v1 autoscaling/v1 autoscaling/v2 batch/v1 certificates.k8s.io/v1 coordination.k8s.io/v1
       discovery.k8s.io/v1 events.k8s.io/v1 flowcontrol.apiserver.k8s.io/v1 networking.k8s.io/v1 node.k8s.io/v1 policy/v1
       rbac.authorization.k8s.io/v1 resource.k8s.io/v1 scheduling.k8s.io/v1 storage.k8s.io/v1`
        .split(/\s+/)
        .toSorted(),
    )
    const preferred = groups.find(({ name }: Json) => name === 'autoscaling').preferredVersion
    assert.equal(preferred.version, 'v2')
  })

  it('do not include alpha and beta versions', async () => {
    for (const path of [
      '/apis/certificates.k8s.io/v1beta1/clustertrustbundles',
      '/apis/certificates.k8s.io/v1beta1/podcertificaterequests',
      '/apis/scheduling.k8s.io/v1alpha2/workloads',
      '/apis/coordination.k8s.io/v1beta1/leasecandidates',
      '/apis/resource.k8s.io/v1beta1/resourceclaims',
    ]) {
      await refused(wire.request('GET', path), 404, {
        message: 'the server could not find the requested resource',
        details: {},
      })
    }
    for (const path of ['/apis/storagemigration.k8s.io/v1beta1', '/apis/internal.apiserver.k8s.io/v1alpha1']) {
      assert.equal((await wire.request('GET', path)).text, '404 page not found\n')
    }
  })
})
