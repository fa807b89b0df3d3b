/**
 * Valid objects by apiVersion and kind, without names: the fuzzer mutates them, so that its requests pass the first
 * checks. Other kinds are generated from their schema.
 */
type Fields = Readonly<Record<string, unknown>>

const labels = { app: 'web' }
const container = { name: 'main', image: 'registry.example/web:1', ports: [{ containerPort: 80, name: 'http' }] }
const podSpec = {
  containers: [
    {
      ...container,
      env: [{ name: 'A', value: 'b' }],
      resources: { requests: { cpu: '100m', memory: '64Mi' }, limits: { cpu: '1', memory: '128Mi' } },
      volumeMounts: [{ name: 'data', mountPath: '/data' }],
      livenessProbe: { httpGet: { path: '/', port: 'http' }, periodSeconds: 5 },
    },
  ],
  volumes: [{ name: 'data', emptyDir: { sizeLimit: '1Gi' } }],
  tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoSchedule' }],
}
const template = { metadata: { labels }, spec: podSpec }
const jobTemplate = { metadata: { labels }, spec: { ...podSpec, restartPolicy: 'Never' } }
const selector = { matchLabels: labels }
const target = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'a' }
const port = { name: 'http', port: 80, targetPort: 'http', protocol: 'TCP' }
const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] }]
const roleSubject = { kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'a' }
const ref = (kind: string): Fields => ({ apiGroup: 'rbac.authorization.k8s.io', kind, name: 'view' })
const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } }
const webhook = {
  name: 'hook.example.com',
  clientConfig: { url: 'https://hook.example.com/' },
  rules: [{ apiGroups: ['x.example.com'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['things'] }],
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
  failurePolicy: 'Ignore',
}

export const SAMPLES: Readonly<Record<string, Fields>> = {
  'v1/ConfigMap': { data: { a: 'b', 'c.d': 'e\nf' }, binaryData: { g: 'aGVsbG8=' } },
  'v1/Secret': { type: 'Opaque', data: { a: 'YQ==' }, stringData: { b: 'c' } },
  'v1/Namespace': { metadata: { labels: { team: 'a' } } },
  'v1/Node': { spec: { podCIDR: '10.1.0.0/24', taints: [{ key: 'a', effect: 'NoSchedule' }] } },
  'v1/Pod': { metadata: { labels }, spec: podSpec },
  'v1/PodTemplate': { template },
  'v1/ReplicationController': { spec: { replicas: 1, selector: labels, template } },
  'v1/Service': { spec: { selector: labels, ports: [port] } },
  'v1/Endpoints': { subsets: [{ addresses: [{ ip: '10.9.0.1' }], ports: [{ name: 'http', port: 80 }] }] },
  'v1/ServiceAccount': { automountServiceAccountToken: false, imagePullSecrets: [{ name: 'a' }] },
  'v1/LimitRange': { spec: { limits: [{ type: 'Container', default: { cpu: '1' }, max: { cpu: '4' } }] } },
  'v1/ResourceQuota': { spec: { hard: { pods: '100000', 'requests.cpu': '100000' } } },
  'v1/PersistentVolumeClaim': { spec: claim },
  'v1/PersistentVolume': {
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/data' } },
  },
  'v1/Event': {
    involvedObject: { kind: 'Pod', namespace: 'fuzz', name: 'a' },
    reason: 'Started',
    message: 'Started',
    type: 'Normal',
    firstTimestamp: '2026-01-02T03:04:05Z',
  },
  'apps/v1/Deployment': { spec: { replicas: 2, selector, template, strategy: { type: 'RollingUpdate' } } },
  'apps/v1/ReplicaSet': { spec: { replicas: 2, selector, template } },
  'apps/v1/DaemonSet': { spec: { selector, template } },
  'apps/v1/StatefulSet': {
    spec: {
      serviceName: 'a',
      selector,
      template,
      volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claim }],
    },
  },
  'apps/v1/ControllerRevision': { revision: 1, data: { spec: { a: [1, 'b'] } } },
  'batch/v1/Job': { spec: { template: jobTemplate, completions: 1, backoffLimit: 2 } },
  'batch/v1/CronJob': { spec: { schedule: '*/5 * * * *', jobTemplate: { spec: { template: jobTemplate } } } },
  'autoscaling/v1/HorizontalPodAutoscaler': { spec: { scaleTargetRef: target, maxReplicas: 3 } },
  'autoscaling/v2/HorizontalPodAutoscaler': {
    spec: {
      scaleTargetRef: target,
      maxReplicas: 3,
      metrics: [
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } } },
      ],
    },
  },
  'policy/v1/PodDisruptionBudget': { spec: { minAvailable: '50%', selector } },
  'networking.k8s.io/v1/Ingress': {
    spec: {
      rules: [
        {
          host: 'a.example.com',
          http: {
            paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'a', port: { number: 80 } } } }],
          },
        },
      ],
    },
  },
  'networking.k8s.io/v1/IngressClass': { spec: { controller: 'example.com/ingress' } },
  'networking.k8s.io/v1/NetworkPolicy': {
    spec: { podSelector: selector, ingress: [{ from: [{ ipBlock: { cidr: '10.0.0.0/8' } }], ports: [{ port: 80 }] }] },
  },
  'networking.k8s.io/v1/ServiceCIDR': { spec: { cidrs: ['10.20.0.0/24'] } },
  'networking.k8s.io/v1/IPAddress': { spec: { parentRef: { resource: 'services', namespace: 'fuzz', name: 'a' } } },
  'rbac.authorization.k8s.io/v1/Role': { rules },
  'rbac.authorization.k8s.io/v1/ClusterRole': { rules: [...rules, { nonResourceURLs: ['/healthz'], verbs: ['get'] }] },
  'rbac.authorization.k8s.io/v1/RoleBinding': { roleRef: ref('ClusterRole'), subjects: [roleSubject] },
  'rbac.authorization.k8s.io/v1/ClusterRoleBinding': { roleRef: ref('ClusterRole'), subjects: [roleSubject] },
  'storage.k8s.io/v1/StorageClass': { provisioner: 'example.com/disk', reclaimPolicy: 'Delete' },
  'storage.k8s.io/v1/CSIDriver': { spec: { attachRequired: true, volumeLifecycleModes: ['Persistent'] } },
  'storage.k8s.io/v1/CSINode': { spec: { drivers: [{ name: 'a.example.com', nodeID: 'n', topologyKeys: ['zone'] }] } },
  'storage.k8s.io/v1/VolumeAttachment': {
    spec: { attacher: 'a.example.com', nodeName: 'n', source: { persistentVolumeName: 'a' } },
  },
  'coordination.k8s.io/v1/Lease': { spec: { holderIdentity: 'a', leaseDurationSeconds: 15 } },
  'discovery.k8s.io/v1/EndpointSlice': {
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.9.0.1'], conditions: { ready: true } }],
    ports: [{ name: 'http', port: 80 }],
  },
  'scheduling.k8s.io/v1/PriorityClass': { value: 1000 },
  'node.k8s.io/v1/RuntimeClass': { handler: 'runc' },
  'events.k8s.io/v1/Event': {
    eventTime: '2026-01-02T03:04:05.000006Z',
    reportingController: 'example.com/c',
    reportingInstance: 'c-1',
    action: 'Start',
    reason: 'Started',
    type: 'Normal',
    regarding: { kind: 'Pod', namespace: 'fuzz', name: 'a' },
  },
  'flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration': {
    spec: { type: 'Limited', limited: { nominalConcurrencyShares: 1, limitResponse: { type: 'Reject' } } },
  },
  'flowcontrol.apiserver.k8s.io/v1/FlowSchema': {
    spec: {
      priorityLevelConfiguration: { name: 'global-default' },
      matchingPrecedence: 5000,
      rules: [
        {
          subjects: [{ kind: 'User', user: { name: 'a' } }],
          resourceRules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'], namespaces: ['*'] }],
        },
      ],
    },
  },
  'admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration': { webhooks: [webhook] },
  'admissionregistration.k8s.io/v1/MutatingWebhookConfiguration': { webhooks: [webhook] },
  'apiregistration.k8s.io/v1/APIService': {
    spec: { group: 'x.example.com', version: 'v1', groupPriorityMinimum: 100, versionPriority: 10 },
  },
  'apiextensions.k8s.io/v1/CustomResourceDefinition': {
    spec: {
      group: 'x.example.com',
      names: { plural: 'things', kind: 'Thing' },
      scope: 'Namespaced',
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object' } } } },
        },
      ],
    },
  },
  'authentication.k8s.io/v1/TokenReview': { spec: { token: 'x' } },
  'authentication.k8s.io/v1/TokenRequest': { spec: { audiences: ['a'], expirationSeconds: 3600 } },
  'authentication.k8s.io/v1/SelfSubjectReview': {},
  'authorization.k8s.io/v1/SubjectAccessReview': {
    spec: { user: 'a', groups: ['b'], resourceAttributes: { verb: 'get', resource: 'pods', namespace: 'fuzz' } },
  },
  'authorization.k8s.io/v1/SelfSubjectAccessReview': { spec: { nonResourceAttributes: { path: '/', verb: 'get' } } },
  'authorization.k8s.io/v1/SelfSubjectRulesReview': { spec: { namespace: 'fuzz' } },
  'authorization.k8s.io/v1/LocalSubjectAccessReview': {
    metadata: { namespace: 'fuzz' },
    spec: { user: 'a', resourceAttributes: { verb: 'get', resource: 'pods', namespace: 'fuzz' } },
  },
  'autoscaling/v1/Scale': { spec: { replicas: 3 } },
  'policy/v1/Eviction': { deleteOptions: { gracePeriodSeconds: 0 } },
  'v1/Binding': { target: { kind: 'Node', name: 'a' } },
}
