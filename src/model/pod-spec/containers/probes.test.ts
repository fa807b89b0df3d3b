import { describePodRules, web } from '../pod-spec.suite.ts'

describePodRules('probes of a pod spec', [
  {
    title: 'probes have one handler and valid numbers',
    patch: {
      containers: [
        web({
          livenessProbe: { successThreshold: 2, periodSeconds: -1 },
          readinessProbe: { exec: { command: ['x'] }, tcpSocket: { port: 1 }, terminationGracePeriodSeconds: 5 },
          startupProbe: {
            httpGet: { path: '/', port: 'Bad_', scheme: 'FTP', httpHeaders: [{ name: 'a b', value: '' }] },
            terminationGracePeriodSeconds: 0,
          },
        }),
      ],
    },
    errors: [
      'spec.containers[0].livenessProbe: Required value: must specify a handler type',
      'spec.containers[0].livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0',
      'spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1',
      'spec.containers[0].readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type',
      'spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readinessProbes',
      'spec.containers[0].startupProbe.httpGet.port: Invalid value: "Bad_": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)',
      'spec.containers[0].startupProbe.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS"',
      `spec.containers[0].startupProbe.httpGet.httpHeaders: Invalid value: "a b": a valid HTTP header must consist of alphanumeric characters or '-' …`,
      'spec.containers[0].startupProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0',
    ],
  },
  {
    title: 'probes and hooks include gRPC and sleep',
    patch: {
      containers: [
        web({
          livenessProbe: { grpc: { port: 0, service: '' } },
          lifecycle: { preStop: { sleep: { seconds: 31 } }, postStart: {} },
        }),
      ],
    },
    errors: [
      'spec.containers[0].lifecycle.postStart: Required value: must specify a handler type',
      'spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)',
      'spec.containers[0].livenessProbe.grpc.port: Invalid value: 0: must be between 1 and 65535, inclusive',
    ],
  },
  {
    title: 'lifecycle has a stop signal of the operating system',
    patch: { os: { name: 'windows' }, containers: [web({ lifecycle: { stopSignal: 'SIGHUP' } })] },
    errors: [
      'spec.containers[0].lifecycle.stopSignal: Unsupported value: "SIGHUP": supported values: "SIGKILL", "SIGTERM"',
    ],
  },
  {
    title: 'lifecycle requires an operating system for stop signals',
    patch: { containers: [web({ lifecycle: { stopSignal: 'SIGTERM' } })] },
    errors: [
      'spec.containers[0].lifecycle.stopSignal: Forbidden: may not be set for containers with empty `spec.os.name`',
    ],
  },
])
