import { describePodRules, web } from '../pod-spec.suite.ts'

describePodRules('env of a pod spec', [
  {
    title: 'environment has valid names and sources',
    patch: {
      containers: [
        web({
          env: [
            { name: '' },
            { name: 'A=B' },
            { name: 'A', valueFrom: {} },
            { name: 'B', value: 'x', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
            {
              name: 'C',
              valueFrom: { fieldRef: { fieldPath: 'metadata.name' }, configMapKeyRef: { name: 'Bad_', key: '..' } },
            },
          ],
        }),
      ],
    },
    errors: [
      'spec.containers[0].env[0].name: Required value',
      `spec.containers[0].env[1].name: Invalid value: "A=B": a valid environment variable name must consist only of printable ASCII characters other than '='`,
      'spec.containers[0].env[2].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`',
      'spec.containers[0].env[3].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
      `spec.containers[0].env[4].valueFrom.configMapKeyRef.name: Invalid value: "Bad_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character …`,
      `spec.containers[0].env[4].valueFrom.configMapKeyRef.key: Invalid value: "..": must not be '..'`,
      'spec.containers[0].env[4].valueFrom: Invalid value: "": may not have more than one field specified at a time',
    ],
  },
  {
    title: 'environment refers to known fields of the pod',
    patch: {
      containers: [
        web({
          env: [
            'status.podIP',
            'spec.host',
            "metadata.labels['a']",
            "metadata.labels['b c']",
            "spec.x['a']",
            'metadata.labels',
            'spec.bogus',
          ].map((fieldPath) => ({ name: 'A', valueFrom: { fieldRef: { fieldPath } } })),
        }),
      ],
    },
    errors: [
      `spec.containers[0].env[3].valueFrom.fieldRef: Invalid value: "b c": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character …`,
      `spec.containers[0].env[4].valueFrom.fieldRef.fieldPath: Invalid value: "spec.x['a']": error converting fieldPath: field label does not support subscript: spec.x['a']`,
      'spec.containers[0].env[5].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.labels": supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"',
      'spec.containers[0].env[6].valueFrom.fieldRef.fieldPath: Invalid value: "spec.bogus": error converting fieldPath: field label not supported: spec.bogus',
    ],
  },
  {
    title: 'environment refers to known container resources',
    patch: {
      containers: [
        web({
          env: [
            { name: 'A', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1Mi' } } },
            { name: 'B', valueFrom: { resourceFieldRef: { resource: 'limits.bogus', divisor: '0' } } },
            { name: 'C', valueFrom: { resourceFieldRef: { resource: 'requests.hugepages-2Mi', divisor: '3' } } },
          ],
        }),
      ],
    },
    errors: [
      `spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor's values 1m and 1 are supported with the cpu resource`,
      'spec.containers[0].env[1].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.bogus": supported values: "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory"',
      `spec.containers[0].env[2].valueFrom.resourceFieldRef.divisor: Invalid value: "requests.hugepages-2Mi": only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the hugepages resource`,
    ],
  },
  {
    title: 'environment reads files of an emptyDir only',
    patch: {
      containers: [
        web({
          env: [
            { name: 'A', valueFrom: { fileKeyRef: { volumeName: 'data', path: 'x', key: 'k' } } },
            { name: 'B', valueFrom: { fileKeyRef: { volumeName: 'cfg', path: '../x', key: 'a=b' } } },
          ],
        }),
      ],
      volumes: [{ name: 'cfg', configMap: { name: 'c' } }],
    },
    errors: [
      `spec.containers[0].env[1].valueFrom.fileKeyRef.key: Invalid value: "a=b": a valid environment variable name must consist only of printable ASCII characters other than '='`,
      `spec.containers[0].env[1].valueFrom.fileKeyRef.path: Invalid value: "../x": must not contain '..'`,
      'spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Not found: "data"',
      'spec.containers[0].env[1].valueFrom.fileKeyRef.volumeName: Invalid value: "cfg": referenced volume must be of type emptyDir',
    ],
  },
  {
    title: 'environment imports whole ConfigMaps and Secrets',
    patch: { containers: [web({ envFrom: [{}, { prefix: 'a=', configMapRef: { name: 'c' }, secretRef: {} }] })] },
    errors: [
      'spec.containers[0].envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`',
      `spec.containers[0].envFrom[1].prefix: Invalid value: "a=": a valid environment variable name must consist only of printable ASCII characters other than '='`,
      'spec.containers[0].envFrom[1].secretRef.name: Required value',
      'spec.containers[0].envFrom: Invalid value: "": may not have more than one field specified at a time',
    ],
  },
])
