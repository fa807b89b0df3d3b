import { describePodRules, web } from './pod-spec.suite.ts'

describePodRules('security of a pod spec', [
  {
    title: 'security has valid ids and profiles',
    patch: {
      securityContext: {
        runAsUser: -1,
        fsGroup: 2 ** 31,
        supplementalGroups: [1, -2],
        fsGroupChangePolicy: 'Never',
        seccompProfile: { type: 'Localhost' },
        appArmorProfile: { type: 'Unconfined', localhostProfile: 'x' },
        supplementalGroupsPolicy: 'X',
        seLinuxChangePolicy: 'MountOption',
      },
      shareProcessNamespace: true,
      hostPID: true,
    },
    errors: [
      'spec.securityContext.fsGroup: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive',
      'spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive',
      'spec.securityContext.supplementalGroups[1]: Invalid value: -2: must be between 0 and 2147483647, inclusive',
      'spec.securityContext.shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled',
      'spec.securityContext.fsGroupChangePolicy: Unsupported value: "Never": supported values: "Always", "OnRootMismatch"',
      'spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost',
      'spec.securityContext.appArmorProfile.localhostProfile: Invalid value: "x": can only be set when AppArmor type is Localhost',
      'spec.securityContext.supplementalGroupsPolicy: Unsupported value: "X": supported values: "Merge", "Strict"',
      'spec.securityContext.seLinuxChangePolicy: Unsupported value: "MountOption": supported values: "Recursive"',
    ],
  },
  {
    title: 'security has valid sysctls',
    patch: {
      hostNetwork: true,
      hostIPC: true,
      securityContext: {
        sysctls: [
          { name: 'Bad!', value: '' },
          { name: 'net.core.x', value: '1' },
          { name: 'kernel.sem', value: '1' },
          { name: 'net.core.x', value: '2' },
          { name: '', value: '' },
        ],
      },
    },
    errors: [
      'spec.securityContext.sysctls[0].name: Invalid value: "Bad!": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$',
      `spec.securityContext.sysctls[1].name: Invalid value: "net.core.x": may not be specified when 'hostNetwork' is true`,
      `spec.securityContext.sysctls[2].name: Invalid value: "kernel.sem": may not be specified when 'hostIPC' is true`,
      'spec.securityContext.sysctls[3].name: Duplicate value: "net.core.x"',
      `spec.securityContext.sysctls[3].name: Invalid value: "net.core.x": may not be specified when 'hostNetwork' is true`,
      'spec.securityContext.sysctls[4].name: Required value',
    ],
  },
  {
    title: 'security contexts of containers are consistent',
    patch: {
      containers: [
        web({
          securityContext: {
            privileged: true,
            allowPrivilegeEscalation: false,
            procMount: 'Unmasked',
            runAsGroup: -5,
            seccompProfile: { type: 'Foo', localhostProfile: 'x' },
          },
        }),
      ],
    },
    errors: [
      'spec.containers[0].securityContext.runAsGroup: Invalid value: -5: must be between 0 and 2147483647, inclusive',
      'spec.containers[0].securityContext.procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`',
      'spec.containers[0].securityContext.seccompProfile.type: Unsupported value: "Foo": supported values: "Localhost", "RuntimeDefault", "Unconfined"',
      'spec.containers[0].securityContext.seccompProfile.localhostProfile: Invalid value: {"type":"Foo","localhostProfile":"x"}: can only be set when seccomp type is Localhost',
      'spec.containers[0].securityContext: Invalid value: {"privileged":true,"allowPrivilegeEscalation":false,"procMount":"Unmasked","runAsGroup":-5,"seccompProfile":{"type":"Foo","localhostProfile":"x"}}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true',
    ],
  },
  {
    title: 'security has valid Windows user names',
    patch: {
      securityContext: {
        windowsOptions: { runAsUserName: 'a\\b\\c', gmsaCredentialSpec: '', gmsaCredentialSpecName: 'Bad_' },
      },
      containers: [web({ securityContext: { windowsOptions: { runAsUserName: '.. ' } } })],
    },
    errors: [
      `spec.containers[0].securityContext.windowsOptions.runAsUserName: Invalid value: ".. ": runAsUserName's User cannot contain only periods or spaces`,
      `spec.securityContext.windowsOptions.gmsaCredentialSpecName: Invalid value: "Bad_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character …`,
      'spec.securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot be an empty string',
      'spec.securityContext.windowsOptions.runAsUserName: Invalid value: "a\\\\b\\\\c": runAsUserName cannot contain more than one backslash',
    ],
  },
  {
    title: 'security allows all containers or none as Windows host processes',
    patch: { containers: [web({ securityContext: { windowsOptions: { hostProcess: true } } }), web({ name: 'side' })] },
    errors: [
      'spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be HostProcess containers',
      'spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers',
    ],
  },
  {
    title: 'pods with os Windows reject Linux fields',
    patch: {
      os: { name: 'windows' },
      hostPID: true,
      hostIPC: false,
      securityContext: { runAsUser: 1 },
      containers: [web({ securityContext: { privileged: true } })],
      resources: { requests: { cpu: '1' } },
    },
    errors: [
      'spec.resources: Forbidden: may not be set for a windows pod',
      'spec.hostPID: Forbidden: cannot be set for a windows pod',
      'spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod',
      'spec.containers[0].securityContext.privileged: Forbidden: cannot be set for a windows pod',
    ],
  },
  {
    title: 'pods with os Linux reject Windows fields',
    patch: {
      os: { name: 'linux' },
      securityContext: { windowsOptions: {} },
      initContainers: [web({ name: 'i', securityContext: { windowsOptions: {} } })],
    },
    errors: [
      'spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod',
      'spec.initContainers[0].securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod',
    ],
  },
  {
    title: 'pods with an unknown os are rejected',
    patch: { os: { name: 'beos' } },
    errors: ['spec.os: Unsupported value: "beos": supported values: "linux", "windows"'],
  },
  {
    title: 'user namespaces exclude host namespaces',
    patch: {
      hostUsers: false,
      hostNetwork: true,
      hostPID: true,
      hostIPC: true,
      volumes: [{ name: 'b', persistentVolumeClaim: { claimName: 'c' } }],
      containers: [web({ volumeDevices: [{ name: 'b', devicePath: '/dev/x' }] })],
    },
    errors: [
      'spec.hostNetwork: Forbidden: when `hostUsers` is false',
      'spec.HostPID: Forbidden: when `hostUsers` is false',
      'spec.HostIPC: Forbidden: when `hostUsers` is false',
      'spec.containers[0].volumeDevices: Forbidden: when `hostUsers` is false',
    ],
  },
])
