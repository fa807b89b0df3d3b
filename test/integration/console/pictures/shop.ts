/** The objects of a small shop: of every family of kinds one that works, and some that do not. */

const namespace = 'shop'
const named = (name: string, more: object = {}): object => ({ name, namespace, ...more })

function template(app: string, container: object = {}, annotations: object = {}): object {
  const resources = { requests: { cpu: '250m', memory: '256Mi' }, limits: { cpu: '1', memory: '512Mi' } }
  const ports = [{ name: 'http', containerPort: 8080 }]
  return {
    metadata: { labels: { app }, annotations },
    spec: { containers: [{ name: app, image: `registry.example/${app}:1.4`, resources, ports, ...container }] },
  }
}

function workload(kind: string, name: string, spec: object): object {
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata: named(name, { labels: { app: name } }),
    spec: { selector: { matchLabels: { app: name } }, ...spec },
  }
}

const ended = { 'simulated.hyperkube.io/run-time': '2s' }
const jobTemplate = (name: string): object => ({
  ...template(name, {}, ended),
  spec: { restartPolicy: 'Never', containers: [{ name, image: 'registry.example/job:1' }] },
})
const LOG = [
  '\u001B[32mINFO\u001B[0m  listening on :8080',
  '\u001B[33mWARN\u001B[0m  cache is cold',
  '{"level":"info","msg":"GET /cart","status":200,"ms":12}',
  `a long line: ${'word '.repeat(60)}`,
  'the last line',
].join('\n')

export const OBJECTS: readonly object[] = [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels: { team: 'web' } } },
  {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'gadgets.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', listKind: 'GadgetList' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }],
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  },
  workload('Deployment', 'web', { replicas: 3, template: template('web') }),
  workload('Deployment', 'cart', { replicas: 2, template: template('cart') }),
  workload('Deployment', 'broken', {
    replicas: 2,
    template: template('broken', { resources: { requests: { cpu: '1000' } } }),
  }),
  workload('StatefulSet', 'db', { replicas: 2, serviceName: 'db', template: template('db') }),
  workload('DaemonSet', 'agent', { template: template('agent') }),
  { apiVersion: 'batch/v1', kind: 'Job', metadata: named('migrate'), spec: { template: jobTemplate('migrate') } },
  {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: named('report'),
    spec: { schedule: '*/5 * * * *', jobTemplate: { spec: { template: jobTemplate('report') } } },
  },
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: named('crashing', { annotations: { 'simulated.hyperkube.io/crash': '1s' } }),
    spec: { containers: [{ name: 'app', image: 'registry.example/app:2' }] },
  },
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: named('talking', { annotations: { 'simulated.hyperkube.io/log': LOG } }),
    spec: { containers: [{ name: 'app', image: 'registry.example/app:2', ports: [{ containerPort: 80 }] }] },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: named('web'),
    spec: { selector: { app: 'web' }, ports: [{ name: 'http', port: 80, targetPort: 'http' }] },
  },
  {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: named('web'),
    spec: {
      tls: [{ hosts: ['shop.example'], secretName: 'certificate' }],
      rules: [
        {
          host: 'shop.example',
          http: {
            paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
          },
        },
      ],
    },
  },
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: named('disk'),
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '10Gi' } } },
  },
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: named('settings'),
    data: { 'app.yaml': 'color: blue\nsize: 3\n', MODE: 'production', long: 'word '.repeat(300) },
  },
  {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: named('password'),
    stringData: { username: 'shop', password: 'hunter2' },
  },
  {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: named('limits'),
    spec: { hard: { pods: '40', 'requests.cpu': '2k', 'requests.memory': '64Gi' } },
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: named('reader'),
    rules: [{ apiGroups: [''], resources: ['pods', 'configmaps'], verbs: ['get', 'list', 'watch'] }],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: named('readers'),
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
    subjects: [
      { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'jane' },
      { kind: 'ServiceAccount', name: 'default', namespace },
    ],
  },
  {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: named('web'),
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' },
      minReplicas: 3,
      maxReplicas: 10,
      metrics: [
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } } },
      ],
    },
  },
  {
    apiVersion: 'example.com/v1',
    kind: 'Gadget',
    metadata: named('blue'),
    spec: { size: 7, parts: [{ name: 'lid' }] },
  },
]
