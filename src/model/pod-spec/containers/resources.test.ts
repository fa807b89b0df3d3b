import { describePodRules, web } from '../pod-spec.suite.ts'

describePodRules('resources of a pod spec', [
  {
    title: 'resources must be known, whole and not negative',
    patch: {
      containers: [
        web({
          resources: { requests: { cpu: '-1', bogus: '1', storage: '1' }, limits: { 'example.com/gpu': '1500m' } },
        }),
      ],
    },
    errors: [
      'spec.containers[0].resources.limits[example.com/gpu]: Invalid value: "1500m": must be an integer',
      'spec.containers[0].resources.requests[bogus]: Invalid value: "bogus": must be a standard resource type or fully qualified',
      'spec.containers[0].resources.requests[bogus]: Invalid value: "bogus": must be a standard resource for containers',
      'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
      'spec.containers[0].resources.requests[storage]: Invalid value: "storage": must be a standard resource for containers',
    ],
  },
  {
    title: 'resources are requested within limits',
    patch: {
      containers: [
        web({
          resources: {
            requests: { cpu: '2', 'example.com/gpu': '1', 'example.com/fpga': '1' },
            limits: { cpu: '1', 'example.com/gpu': '2' },
          },
        }),
      ],
    },
    errors: [
      'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
      'spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources',
      'spec.containers[0].resources.requests: Invalid value: "1": must be equal to example.com/gpu limit of 2',
    ],
  },
  {
    title: 'resources have whole huge pages, with CPU or memory',
    patch: {
      containers: [web({ resources: { requests: { 'hugepages-2Mi': '3Mi' }, limits: { 'hugepages-2Mi': '3Mi' } } })],
    },
    errors: [
      'spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi',
      'spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi',
      'spec.containers[0].resources: Forbidden: HugePages require cpu or memory',
    ],
  },
  {
    title: 'resources refer to claims of the pod',
    patch: {
      resourceClaims: [{ name: 'gpu', resourceClaimName: 'x' }],
      containers: [
        web({ resources: { claims: [{ name: 'gpu', request: 'a' }, { name: 'gpu' }, { name: 'nic' }, { name: '' }] } }),
      ],
    },
    errors: [
      'spec.containers[0].resources.claims[1]: Duplicate value: "gpu"',
      'spec.containers[0].resources.claims[2]: Not found: "nic": must be one of the names in pod.spec.resourceClaims: gpu',
      'spec.containers[0].resources.claims[3]: Required value',
    ],
  },
  {
    title: 'resources of the pod cover those of its containers',
    patch: {
      resources: { requests: { cpu: '1' }, limits: { cpu: '1', storage: '1' } },
      containers: [web({ resources: { requests: { cpu: '2' }, limits: { cpu: '2' } } })],
    },
    errors: [
      'spec.resources.limits[storage]: Unsupported value: "storage": supported values: "cpu", "hugepages-", "memory"',
      'spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container requests of 2',
      'spec.resources.containers[0][cpu].limits: Invalid value: "2": must be less than or equal to pod limits of 1',
    ],
  },
  {
    title: 'resources of a resize are CPU and memory',
    patch: {
      restartPolicy: 'Never',
      containers: [
        web({
          resizePolicy: [
            { resourceName: 'cpu', restartPolicy: 'RestartContainer' },
            { resourceName: 'cpu', restartPolicy: 'NotRequired' },
            { resourceName: 'disk', restartPolicy: '' },
          ],
        }),
      ],
    },
    errors: [
      "spec.containers[0].resizePolicy: Invalid value: \"RestartContainer\": must be 'NotRequired' when pod `restartPolicy` is 'Never'",
      'spec.containers[0].resizePolicy[1]: Duplicate value: "cpu"',
      'spec.containers[0].resizePolicy: Unsupported value: "disk": supported values: "cpu", "memory"',
      'spec.containers[0].resizePolicy: Required value',
      "spec.containers[0].resizePolicy: Invalid value: \"\": must be 'NotRequired' when pod `restartPolicy` is 'Never'",
    ],
  },
  {
    title: 'resources of the pod overhead are validated',
    patch: { overhead: { disk: '1' } },
    errors: [
      'spec.overhead.limits[disk]: Invalid value: "disk": must be a standard resource type or fully qualified',
      'spec.overhead.limits[disk]: Invalid value: "disk": must be a standard resource for containers',
    ],
  },
  {
    title: 'resource claims refer to one claim or one template',
    patch: {
      resourceClaims: [{ name: 'a' }, { name: 'a', resourceClaimName: 'x', resourceClaimTemplateName: 'Bad_' }],
    },
    errors: [
      'spec.resourceClaims[0]: Invalid value: {"name":"a"}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`',
      'spec.resourceClaims[1].name: Duplicate value: "a"',
      'spec.resourceClaims[1]: Invalid value: {"name":"a","resourceClaimName":"x","resourceClaimTemplateName":"Bad_"}: at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified',
      `spec.resourceClaims[1].resourceClaimTemplateName: Invalid value: "Bad_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character …`,
    ],
  },
])
