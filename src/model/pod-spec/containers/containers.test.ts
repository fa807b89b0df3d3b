import { describePodRules, web } from '../pod-spec.suite.ts'

describePodRules('containers of a pod spec', [
  {
    title: 'containers are required',
    patch: { containers: [] },
    errors: ['spec.containers: Required value'],
  },
  {
    title: 'containers have unique names',
    patch: { containers: [web({}), web({}), web({ name: 'Bad_Name' })] },
    errors: [
      'spec.containers[1].name: Duplicate value: "web"',
      `spec.containers[2].name: Invalid value: "Bad_Name": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character …`,
    ],
  },
  {
    title: 'containers need an image and known policies',
    patch: { containers: [web({ image: '', imagePullPolicy: 'Sometimes', terminationMessagePolicy: 'Mail' })] },
    errors: [
      'spec.containers[0].image: Required value',
      'spec.containers[0].terminationMessagePolicy: Unsupported value: "Mail": supported values: "File", "FallbackToLogsOnError"',
      'spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"',
    ],
  },
  {
    title: 'containers have valid ports and port names',
    patch: {
      containers: [
        web({
          ports: [
            { containerPort: 0 },
            { containerPort: 70000, hostPort: -1, protocol: 'ICMP' },
            { name: 'Http', containerPort: 80 },
            { name: 'a', containerPort: 1 },
            { name: 'a', containerPort: 2 },
          ],
        }),
      ],
    },
    errors: [
      'spec.containers[0].ports[0].containerPort: Required value',
      'spec.containers[0].ports[1].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive',
      'spec.containers[0].ports[1].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive',
      'spec.containers[0].ports[1].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
      'spec.containers[0].ports[2].name: Invalid value: "Http": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
      'spec.containers[0].ports[4].name: Duplicate value: "a"',
    ],
  },
  {
    title: 'containers cannot share a host port',
    patch: {
      containers: [
        web({ ports: [{ containerPort: 80, hostPort: 80 }] }),
        web({ name: 'side', ports: [{ containerPort: 81, hostPort: 80 }] }),
      ],
    },
    errors: ['spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//80"'],
  },
  {
    title: 'containers on the host network use its ports',
    patch: { hostNetwork: true, containers: [web({ ports: [{ containerPort: 80 }] })] },
    errors: [
      'spec.containers[0].ports[0].hostPort: Invalid value: 0: must match `containerPort` when `hostNetwork` is true',
    ],
  },
  {
    title: 'init containers have no probes unless they are sidecars',
    patch: {
      initContainers: [
        web({ name: 'init', livenessProbe: { exec: { command: ['true'] } }, lifecycle: {} }),
        web({ name: 'sidecar', restartPolicy: 'Always', livenessProbe: { exec: { command: ['true'] } } }),
      ],
    },
    errors: [
      'spec.initContainers[0].lifecycle: Forbidden: may not be set for init containers without restartPolicy=Always',
      'spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without restartPolicy=Always',
    ],
  },
  {
    title: 'init containers share no name with others',
    patch: { initContainers: [web({})] },
    errors: ['spec.initContainers[0].name: Duplicate value: "web"'],
  },
  {
    title: 'init containers have valid restart policies and rules',
    patch: {
      initContainers: [
        web({ name: 'a', restartPolicy: 'Sometimes' }),
        web({ name: 'b', restartPolicyRules: [{ action: 'Restart' }] }),
        web({
          name: 'c',
          restartPolicy: 'Never',
          restartPolicyRules: [
            { action: 'Explode', exitCodes: { operator: 'Near', values: [1] } },
            { action: 'Restart' },
          ],
        }),
      ],
    },
    errors: [
      'spec.initContainers[0].restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"',
      'spec.initContainers[1].restartPolicy: Required value: must specify restartPolicy when restart rules are used',
      'spec.initContainers[2].restartPolicyRules[0].action: Unsupported value: "Explode": supported values: "Restart", "RestartAllContainers"',
      'spec.initContainers[2].restartPolicyRules[0].exitCodes.operator: Unsupported value: "Near": supported values: "In", "NotIn"',
      'spec.initContainers[2].restartPolicyRules[1].exitCodes: Required value: must be specified',
    ],
  },
  {
    title: 'init containers are not restarted by a resize',
    patch: {
      initContainers: [
        web({ name: 'init', resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'RestartContainer' }] }),
      ],
    },
    errors: [
      `spec.initContainers[0].resizePolicy[0].restartPolicy: Invalid value: "RestartContainer": must not be set to 'RestartContainer' for non-sidecar initContainers`,
    ],
  },
  {
    title: 'ephemeral containers reject ports, probes and resources',
    patch: {
      ephemeralContainers: [
        web({
          name: 'web',
          ports: [{ containerPort: 1 }],
          resources: { requests: { cpu: '1' } },
          livenessProbe: { exec: { command: ['x'] } },
          volumeMounts: [{ name: 'data', mountPath: '/a', subPath: 'b' }],
        }),
        { ...web({ name: 'debug' }), targetContainerName: 'nobody' },
      ],
      volumes: [{ name: 'data', emptyDir: {} }],
    },
    errors: [
      'spec.ephemeralContainers[0].name: Duplicate value: "web"',
      'spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container',
      'spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container',
      'spec.ephemeralContainers[0].livenessProbe: Forbidden: cannot be set for an Ephemeral Container',
      'spec.ephemeralContainers[0].volumeMounts[0].subPath: Forbidden: cannot be set for an Ephemeral Container',
      'spec.ephemeralContainers[1].targetContainerName: Not found: "nobody"',
    ],
  },
])
