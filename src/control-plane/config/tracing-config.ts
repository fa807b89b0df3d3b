/** TracingConfiguration: the collector and the sampling rate. Errors have upstream's texts. */
import { parseGoUrl } from '#lib/go/url.ts'
import type { GrpcTarget } from '#lib/grpc/connection.ts'
import { defineConfig, readConfig } from '#meta/config-kind.ts'
import { aggregateText } from '#meta/validation/field-error.ts'
import { type FieldError, fieldPath } from '#meta/validation/field-path.ts'

const STRUCTS = {
  TracingConfiguration: { endpoint: '*string =localhost:4317', samplingRatePerMillion: '*int32 =0' },
} as const

const TRACING = defineConfig(
  ['TracingConfiguration', 'TracingConfiguration'],
  ['v1', 'v1beta1', 'v1alpha1'].map((version) => `apiserver.config.k8s.io/${version}`),
  STRUCTS,
)

export interface TracingConfig {
  readonly target: GrpcTarget
  readonly samplingRatePerMillion: number
}

const MILLION = 1_000_000

/** Throws upstream's texts. */
export function parseTracingConfig(source: string): TracingConfig {
  let value
  try {
    ;({ value } = readConfig(source, [TRACING], {
      defaultKind: { group: 'apiserver.config.k8s.io', version: 'v1', kind: TRACING.kind },
      mistaken: (kind) => `converting (v1.${kind}) to (apiserver.${TRACING.kind}): unknown conversion`,
    }))
  } catch (cause) {
    const why = `unable to decode tracing configuration data: ${(cause as Error).message}`
    throw new Error(`failed to read tracing config: ${why}`, { cause })
  }
  const { endpoint, samplingRatePerMillion } = TRACING.withDefaults(value)
  const errors = [...rateErrors(samplingRatePerMillion), ...endpointErrors(endpoint)]
  if (errors.length > 0) throw new Error(`failed to validate tracing configuration: ${aggregateText(errors)}`)
  return { target: targetOf(endpoint), samplingRatePerMillion }
}

function rateErrors(rate: number): FieldError[] {
  const field = fieldPath('samplingRatePerMillion')
  if (rate < 0) return [field.invalid(rate, 'sampling rate must be positive')]
  if (rate <= MILLION) return []
  return [field.invalid(rate, 'sampling rate per million must be less than or equal to one million')]
}

const SCHEMES = ['dns', 'unix', 'unix-abstract']

function endpointErrors(endpoint: string): FieldError[] {
  const whole = endpoint.includes('//') ? endpoint : `dns://${endpoint}`
  const url = parseGoUrl(whole)
  if (typeof url === 'string') return [fieldPath('endpoint').invalid(whole, url)]
  if (SCHEMES.includes(url.scheme)) return []
  const naming = 'See https://github.com/grpc/grpc/blob/master/doc/naming.md'
  const options = 'Options are none, dns, unix, or unix-abstract.'
  return [fieldPath('endpoint').invalid(whole, `unsupported scheme: ${url.scheme}.  ${options}  ${naming}`)]
}

const HTTPS_PORT = 443

/** gRPC target names: `host:port`, `dns://resolver/host:port`, `unix:///path`. */
function targetOf(endpoint: string): GrpcTarget {
  const [, scheme = 'dns', rest = ''] = /^(?:(dns|unix|unix-abstract):(?:\/\/)?)?(.*)$/.exec(endpoint) ?? []
  if (scheme === 'unix') return { path: rest }
  if (scheme === 'unix-abstract') return { path: `\0${rest}` }
  const address = endpoint.startsWith('dns:') ? rest.replace(/^[^/]*\//, '') : rest
  const [, host = '', port = String(HTTPS_PORT)] = /^(.*?)(?::(\d+))?$/.exec(address) ?? []
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port: Number(port) }
}
