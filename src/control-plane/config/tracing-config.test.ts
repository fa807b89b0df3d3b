import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { parseTracingConfig } from './tracing-config.ts'

const config = (lines: string, version = 'v1'): string =>
  `apiVersion: apiserver.config.k8s.io/${version}\nkind: TracingConfiguration\n${lines}`

const NAMING =
  'Options are none, dns, unix, or unix-abstract.  See https://github.com/grpc/grpc/blob/master/doc/naming.md'

describe('TracingConfiguration file', () => {
  const targets: readonly (readonly [lines: string, target: object, rate: number])[] = [
    ['', { host: 'localhost', port: 4317 }, 0],
    ['endpoint: collector:4317\nsamplingRatePerMillion: 100\n', { host: 'collector', port: 4317 }, 100],
    ['endpoint: "[::1]:4317"', { host: '::1', port: 4317 }, 0],
    ['endpoint: dns://collector:1', { host: 'collector', port: 1 }, 0],
    ['endpoint: dns:///collector:1', { host: 'collector', port: 1 }, 0],
    ['endpoint: dns://8.8.8.8/collector:1', { host: 'collector', port: 1 }, 0],
    ['endpoint: unix:///run/otel.sock', { path: '/run/otel.sock' }, 0],
    ['endpoint: unix-abstract://otel', { path: '\0otel' }, 0],
  ]
  for (const [lines, target, samplingRatePerMillion] of targets) {
    it(`sets the target ${JSON.stringify(target)} for the lines "${lines}"`, () => {
      assert.deepEqual(parseTracingConfig(config(lines)), { target, samplingRatePerMillion })
    })
  }

  it('may have an older apiVersion, or none', () => {
    assert.equal(parseTracingConfig('kind: TracingConfiguration\n').samplingRatePerMillion, 0)
    for (const version of ['v1beta1', 'v1alpha1']) {
      assert.equal(parseTracingConfig(config('samplingRatePerMillion: 1', version)).samplingRatePerMillion, 1)
    }
  })

  const faults: readonly (readonly [source: string, message: string])[] = [
    [
      config('samplingRatePerMillion: -1'),
      'failed to validate tracing configuration: samplingRatePerMillion: Invalid value: -1: sampling rate must be positive',
    ],
    [
      config('samplingRatePerMillion: 1000001'),
      'failed to validate tracing configuration: samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than or equal to one million',
    ],
    [
      config('endpoint: https://collector\nsamplingRatePerMillion: -1'),
      `failed to validate tracing configuration: [samplingRatePerMillion: Invalid value: -1: sampling rate must be positive, endpoint: Invalid value: "https://collector": unsupported scheme: https.  ${NAMING}]`,
    ],
    [
      config('endpoints: a'),
      'failed to read tracing config: unable to decode tracing configuration data: strict decoding error: unknown field "endpoints"',
    ],
    [
      config('').replace('Tracing', 'Encryption'),
      'failed to read tracing config: unable to decode tracing configuration data: converting (v1.EncryptionConfiguration) to (apiserver.TracingConfiguration): unknown conversion',
    ],
  ]
  for (const [source, message] of faults) {
    it(`is refused with error "${message}"`, () => {
      assert.throws(() => parseTracingConfig(source), new Error(message))
    })
  }
})
