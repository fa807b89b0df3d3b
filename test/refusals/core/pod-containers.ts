/**
 * Refusal cases: invalid containers of a pod. The valid pod is that of `pod.ts`: containers `web` and `log`, volume
 * `scratch`.
 */
import { printing, type Refusal, type Trial } from '../case.ts'

const WEB = '/spec/containers/0'

export const podContainers: readonly Refusal[] = [
  { why: 'containers are missing', set: { '/spec/containers': [] } },
  { why: 'containers are not a list', set: { '/spec/containers': {} } },
  { why: 'a container has no name', set: { [`${WEB}/name`]: undefined } },
  { why: 'a container name has a dot', set: { [`${WEB}/name`]: 'web.1' } },
  { why: 'a container name is too long', set: { [`${WEB}/name`]: 'a'.repeat(64) } },
  { why: 'two containers have one name', set: { '/spec/containers/1/name': 'web' } },
  {
    why: 'an init container has the name of a container',
    set: { '/spec/initContainers': [{ name: 'web', image: 'x' }] },
  },
  {
    why: 'an ephemeral container is there from the start',
    set: { '/spec/ephemeralContainers': [{ name: 'debug', image: 'x' }] },
  },
  { why: 'a container has no image', set: { [`${WEB}/image`]: '' } },
  { why: 'an image has spaces', set: { [`${WEB}/image`]: ' nginx ' } },
  { why: 'the pull policy is unknown', set: { [`${WEB}/imagePullPolicy`]: 'Sometimes' } },
  { why: 'the termination message policy is unknown', set: { [`${WEB}/terminationMessagePolicy`]: 'Never' } },
  { why: 'a port is 0', set: { [`${WEB}/ports/0/containerPort`]: 0 } },
  { why: 'a port is too high', set: { [`${WEB}/ports/0/containerPort`]: 65_536 } },
  { why: 'a port is text', set: { [`${WEB}/ports/0/containerPort`]: 'http' } },
  { why: 'a host port is negative', set: { [`${WEB}/ports/0/hostPort`]: -1 } },
  {
    why: 'a repeated host port',
    set: {
      [`${WEB}/ports`]: [
        { containerPort: 80, hostPort: 80 },
        { containerPort: 81, hostPort: 80 },
      ],
    },
  },
  { why: 'a protocol is unknown', set: { [`${WEB}/ports/0/protocol`]: 'HTTP' } },
  { why: 'a port name has capitals', set: { [`${WEB}/ports/0/name`]: 'HTTP' } },
  { why: 'a port name is too long', set: { [`${WEB}/ports/0/name`]: 'a-name-of-16-let' } },
  { why: 'a port name has no letter', set: { [`${WEB}/ports/0/name`]: '80' } },
  { why: 'a port name has two dashes', set: { [`${WEB}/ports/0/name`]: 'a--b' } },
  { why: 'two ports have one name', set: { [`${WEB}/ports/-`]: { name: 'http', containerPort: 81 } } },
  { why: 'a variable name has an equals sign', set: { [`${WEB}/env`]: [{ name: 'A=B', value: 'x' }] } },
  { why: 'a variable has no name', set: { [`${WEB}/env`]: [{ value: 'x' }] } },
  {
    why: 'a variable has a value and a source',
    set: { [`${WEB}/env`]: [{ name: 'A', value: 'x', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }] },
  },
  { why: 'a variable has an empty source', set: { [`${WEB}/env`]: [{ name: 'A', valueFrom: {} }] } },
  {
    why: 'a variable has two sources',
    set: {
      [`${WEB}/env`]: [
        { name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' }, secretKeyRef: { name: 's', key: 'k' } } },
      ],
    },
  },
  {
    why: 'a variable reads a field that is not for it',
    set: { [`${WEB}/env`]: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'status.phase' } } }] },
  },
  {
    why: 'a variable reads no field',
    set: { [`${WEB}/env`]: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'spec.secret' } } }] },
  },
  {
    why: 'a variable reads a label by a bad name',
    set: { [`${WEB}/env`]: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: "metadata.labels['a b']" } } }] },
  },
  {
    why: 'a variable reads all labels',
    set: { [`${WEB}/env`]: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.labels' } } }] },
  },
  {
    why: 'a variable reads an unknown resource',
    set: { [`${WEB}/env`]: [{ name: 'A', valueFrom: { resourceFieldRef: { resource: 'limits.gpu' } } }] },
  },
  {
    why: 'a variable with an invalid divisor',
    set: {
      [`${WEB}/env`]: [{ name: 'A', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '2m' } } }],
    },
  },
  {
    why: 'a variable reads a secret without a key',
    set: { [`${WEB}/env`]: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: '' } } }] },
  },
  {
    why: 'a variable reads a configmap without a name',
    set: { [`${WEB}/env`]: [{ name: 'A', valueFrom: { configMapKeyRef: { key: 'k' } } }] },
  },
  {
    why: 'a variable reads a key with a slash',
    set: { [`${WEB}/env`]: [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'c', key: 'a/b' } } }] },
  },
  { why: 'variables come from nowhere', set: { [`${WEB}/envFrom`]: [{ prefix: 'A_' }] } },
  {
    why: 'variables come from two places',
    set: { [`${WEB}/envFrom`]: [{ configMapRef: { name: 'a' }, secretRef: { name: 'b' } }] },
  },
  { why: 'variables come from a bad name', set: { [`${WEB}/envFrom`]: [{ configMapRef: { name: 'A B' } }] } },
  {
    why: 'variables have a prefix with a space',
    set: { [`${WEB}/envFrom`]: [{ prefix: 'a =', configMapRef: { name: 'a' } }] },
  },
  { why: 'a mount has no path', set: { '/spec/containers/1/volumeMounts/0/mountPath': '' } },
  { why: 'a mount names no volume', set: { '/spec/containers/1/volumeMounts/0/name': '' } },
  { why: 'a mount names a volume that is not there', set: { '/spec/containers/1/volumeMounts/0/name': 'other' } },
  {
    why: 'two mounts have one path',
    set: { '/spec/containers/1/volumeMounts/-': { name: 'scratch', mountPath: '/scratch' } },
  },
  { why: 'a mount climbs out', set: { '/spec/containers/1/volumeMounts/0/subPath': '../up' } },
  { why: 'a sub path is absolute', set: { '/spec/containers/1/volumeMounts/0/subPath': '/etc' } },
  {
    why: 'a mount has two sub paths',
    set: { '/spec/containers/1/volumeMounts/0/subPath': 'a', '/spec/containers/1/volumeMounts/0/subPathExpr': 'b' },
  },
  {
    why: 'a mount propagates from a plain container',
    set: { '/spec/containers/1/volumeMounts/0/mountPropagation': 'Bidirectional' },
  },
  { why: 'a mount propagates in an unknown way', set: { '/spec/containers/1/volumeMounts/0/mountPropagation': 'Up' } },
  {
    why: 'a mount is read only all the way down but writable',
    set: { '/spec/containers/1/volumeMounts/0/recursiveReadOnly': 'Enabled' },
  },
  { why: 'a device is not a claim', set: { [`${WEB}/volumeDevices`]: [{ name: 'scratch', devicePath: '/dev/x' }] } },
  { why: 'a device path climbs out', set: { [`${WEB}/volumeDevices`]: [{ name: 'gone', devicePath: '/dev/../x' }] } },
  {
    why: 'a request is more than its limit',
    set: { [`${WEB}/resources`]: { requests: { cpu: '2' }, limits: { cpu: '1' } } },
  },
  { why: 'a request is negative', set: { [`${WEB}/resources/requests/cpu`]: '-1' } },
  { why: 'a quantity is not a number', set: { [`${WEB}/resources/requests/memory`]: '1 GiB' } },
  { why: 'a quantity is a list', set: { [`${WEB}/resources/requests/memory`]: [1] } },
  { why: 'an unknown resource is requested', set: { [`${WEB}/resources/requests/gpu`]: '1' } },
  { why: 'a resource name is none', set: { [`${WEB}/resources/requests/a b`]: '1' } },
  {
    why: 'a fractional device count',
    set: { [`${WEB}/resources`]: { requests: { 'example.com/gpu': '500m' }, limits: { 'example.com/gpu': '500m' } } },
  },
  { why: 'a device request without a count limit', set: { [`${WEB}/resources/requests/example.com~1gpu`]: '1' } },
  {
    why: 'a device request differs from its limit',
    set: { [`${WEB}/resources`]: { requests: { 'example.com/gpu': '1' }, limits: { 'example.com/gpu': '2' } } },
  },
  { why: 'huge pages without CPU or memory', set: { [`${WEB}/resources`]: { limits: { 'hugepages-2Mi': '4Mi' } } } },
  {
    why: 'huge pages that are not a multiple of their size',
    set: { [`${WEB}/resources`]: { limits: { 'hugepages-2Mi': '3Mi', cpu: '1' } } },
  },
  { why: 'a claim is not there', set: { [`${WEB}/resources/claims`]: [{ name: 'gpu' }] } },
  { why: 'a probe without a handler', set: { [`${WEB}/livenessProbe`]: {} } },
  {
    why: 'a probe does two things',
    set: { [`${WEB}/livenessProbe`]: { exec: { command: ['true'] }, tcpSocket: { port: 80 } } },
  },
  { why: 'an exec probe without a command', set: { [`${WEB}/livenessProbe`]: { exec: {} } } },
  { why: 'a probe has no port', set: { [`${WEB}/readinessProbe`]: { httpGet: { path: '/' } } } },
  { why: 'a probe port is too high', set: { [`${WEB}/readinessProbe`]: { httpGet: { path: '/', port: 70_000 } } } },
  { why: 'a probe port name is none', set: { [`${WEB}/readinessProbe`]: { httpGet: { path: '/', port: 'a_b' } } } },
  { why: 'a probe scheme is unknown', set: { [`${WEB}/readinessProbe`]: { httpGet: { port: 80, scheme: 'FTP' } } } },
  {
    why: 'a probe header has a space',
    set: { [`${WEB}/readinessProbe`]: { httpGet: { port: 80, httpHeaders: [{ name: 'a b', value: 'x' }] } } },
  },
  {
    why: 'probe numbers are negative',
    set: {
      [`${WEB}/livenessProbe`]: {
        tcpSocket: { port: 80 },
        initialDelaySeconds: -1,
        timeoutSeconds: -1,
        periodSeconds: -1,
        successThreshold: -1,
        failureThreshold: -1,
      },
    },
  },
  {
    why: 'a liveness probe needs two successes',
    set: { [`${WEB}/livenessProbe`]: { tcpSocket: { port: 80 }, successThreshold: 2 } },
  },
  {
    why: 'a readiness probe has a grace period',
    set: { [`${WEB}/readinessProbe`]: { tcpSocket: { port: 80 }, terminationGracePeriodSeconds: 5 } },
  },
  {
    why: 'a liveness probe has no grace',
    set: { [`${WEB}/livenessProbe`]: { tcpSocket: { port: 80 }, terminationGracePeriodSeconds: 0 } },
  },
  { why: 'a grpc probe has no port', set: { [`${WEB}/startupProbe`]: { grpc: { port: 0 } } } },
  { why: 'a hook without a handler', set: { [`${WEB}/lifecycle`]: { postStart: {} } } },
  { why: 'a hook sleeps too long', set: { [`${WEB}/lifecycle`]: { preStop: { sleep: { seconds: 60 } } } } },
  {
    why: 'a stop signal has no operating system',
    set: { [`${WEB}/lifecycle`]: { preStop: { exec: { command: [] } } } },
  },
  {
    why: 'an init container has probes',
    set: {
      '/spec/initContainers': [
        {
          name: 'first',
          image: 'x',
          readinessProbe: { tcpSocket: { port: 80 } },
          lifecycle: { preStop: { exec: { command: ['x'] } } },
        },
      ],
    },
  },
  {
    why: 'an init container restarts in an unknown way',
    set: { '/spec/initContainers': [{ name: 'first', image: 'x', restartPolicy: 'Sometimes' }] },
  },
  {
    why: 'a container restarts by rules without a policy',
    set: { [`${WEB}/restartPolicyRules`]: [{ action: 'Restart', exitCodes: { operator: 'In', values: [1] } }] },
  },
  {
    why: 'a restart rule is unknown',
    set: {
      [`${WEB}/restartPolicy`]: 'Never',
      [`${WEB}/restartPolicyRules`]: [{ action: 'Jump', exitCodes: { operator: 'Near', values: [1] } }],
    },
  },
  {
    why: 'a resize policy is unknown',
    set: { [`${WEB}/resizePolicy`]: [{ resourceName: 'disk', restartPolicy: 'Later' }] },
  },
  {
    why: 'a container runs as a negative user',
    set: { [`${WEB}/securityContext`]: { runAsUser: -1, runAsGroup: -1 } },
  },
  {
    why: 'a privileged container without allowPrivilegeEscalation',
    set: { [`${WEB}/securityContext`]: { privileged: true, allowPrivilegeEscalation: false } },
    ours: printing('{"privileged":true,"allowPrivilegeEscalation":false}'),
  },
  {
    why: 'CAP_SYS_ADMIN without allowPrivilegeEscalation',
    set: { [`${WEB}/securityContext`]: { capabilities: { add: ['CAP_SYS_ADMIN'] }, allowPrivilegeEscalation: false } },
    ours: printing('{"capabilities":{"add":["CAP_SYS_ADMIN"]},"allowPrivilegeEscalation":false}'),
  },
  { why: 'the proc mount is unknown', set: { [`${WEB}/securityContext`]: { procMount: 'Some' } } },
  { why: 'a proc mount without a user namespace', set: { [`${WEB}/securityContext`]: { procMount: 'Unmasked' } } },
  {
    why: 'a local seccomp profile has no file',
    set: { [`${WEB}/securityContext`]: { seccompProfile: { type: 'Localhost' } } },
  },
  {
    why: 'a default seccomp profile has a file',
    set: { [`${WEB}/securityContext`]: { seccompProfile: { type: 'RuntimeDefault', localhostProfile: 'x' } } },
    ours: printing('{"type":"RuntimeDefault","localhostProfile":"x"}'),
  },
  { why: 'a seccomp profile is unknown', set: { [`${WEB}/securityContext`]: { seccompProfile: { type: 'Strict' } } } },
  {
    why: 'a seccomp file is absolute',
    set: { [`${WEB}/securityContext`]: { seccompProfile: { type: 'Localhost', localhostProfile: '/x' } } },
  },
  {
    why: 'an AppArmor profile is unknown',
    set: { [`${WEB}/securityContext`]: { appArmorProfile: { type: 'Strict' } } },
  },
  {
    why: 'an AppArmor file has spaces',
    set: { [`${WEB}/securityContext`]: { appArmorProfile: { type: 'Localhost', localhostProfile: ' x' } } },
  },
  {
    why: 'Windows options have a long user',
    set: { [`${WEB}/securityContext`]: { windowsOptions: { runAsUserName: 'a'.repeat(300) } } },
  },
  {
    why: 'a Windows host process is plain',
    set: { [`${WEB}/securityContext`]: { windowsOptions: { hostProcess: true } } },
  },
]

export const containersTaken: readonly Trial[] = [
  { why: 'a variable name has a space', set: { [`${WEB}/env`]: [{ name: 'A B', value: 'x' }] } },
]
