/**
 * `--runtime-config`: the served versions and resources of the API. Maturity first (api/all, then ga, beta, alpha),
 * then versions, then resources; the most specific one wins. Upstream's rules (resourceconfig, v1.36).
 */
import { groups, type Kind } from '#apis/kinds.ts'
import { apiVersionOf, isStable } from '#meta/kind.ts'

export type RuntimeConfig = ReadonlyMap<string, string>

const MATURITIES: readonly (readonly [key: string, matches: (version: string) => boolean])[] = [
  ['api/all', () => true],
  ['api/ga', (version) => /^v\d+$/.test(version)],
  ['api/beta', (version) => /^v\d+beta\d+$/.test(version)],
  ['api/alpha', (version) => /^v\d+alpha\d+$/.test(version)],
]

const MATURITY_KEYS: ReadonlySet<string> = new Set(MATURITIES.map(([key]) => key))

/** The errors, with upstream's texts where they exist. */
export function runtimeConfigErrors(config: RuntimeConfig): string[] {
  if (config.size === 1 && config.get('api/all') === 'false') return ['invalid runtime-config with only api/all=false']
  const unknownGroups: string[] = []
  const errors: string[] = []
  for (const [key, value] of config) {
    if (!['', 'true', 'false'].includes(value) || (MATURITY_KEYS.has(key) && value === '')) {
      errors.push(`invalid value ${key}=${value}`)
    }
    if (MATURITY_KEYS.has(key)) continue
    const { group, version, resource } = splitKey(key)
    const name = apiVersionOf({ group, version })
    if (!GROUPS.has(group)) unknownGroups.push(name)
    else if (!isServed(group, version) && !KNOWN.includes(name)) {
      errors.push(`group version ${name} that has not been registered`)
    } else if (resource !== undefined && resource !== resource.toLowerCase()) {
      errors.push(
        `invalid key ${key}: group/version/resource and resource is always lowercase plural, not "${resource}"`,
      )
    }
  }
  return unknownGroups.length === 0 ? errors : [`unknown api groups ${unknownGroups.sort().join(',')}`, ...errors]
}

/** Versions that upstream recognizes but does not serve: enabling them is harmless and has no effect. */
const KNOWN: readonly string[] = [
  'admission.k8s.io/v1',
  'admission.k8s.io/v1beta1',
  'apiextensions.k8s.io/v1beta1',
  'apiregistration.k8s.io/v1beta1',
  'apps/v1beta1',
  'apps/v1beta2',
  'authentication.k8s.io/v1alpha1',
  'authentication.k8s.io/v1beta1',
  'authorization.k8s.io/v1beta1',
  'batch/v1beta1',
  'discovery.k8s.io/v1beta1',
  'events.k8s.io/v1beta1',
  'extensions/v1beta1',
  'flowcontrol.apiserver.k8s.io/v1beta1',
  'flowcontrol.apiserver.k8s.io/v1beta2',
  'flowcontrol.apiserver.k8s.io/v1beta3',
  'imagepolicy.k8s.io/v1alpha1',
  'node.k8s.io/v1alpha1',
  'node.k8s.io/v1beta1',
  'policy/v1beta1',
  'rbac.authorization.k8s.io/v1alpha1',
  'rbac.authorization.k8s.io/v1beta1',
  'scheduling.k8s.io/v1beta1',
  'storage.k8s.io/v1alpha1',
  'storage.k8s.io/v1beta1',
]

const GROUPS: ReadonlySet<string> = new Set([
  ...groups.map(({ name }) => name),
  ...KNOWN.map((version) => version.slice(0, version.indexOf('/'))),
])

function isServed(group: string, version: string): boolean {
  return groups.some(({ name, versions }) => name === group && versions.some((one) => one.version === version))
}

/** Requested versions that are not served, for the log. */
export function goneVersions(config: RuntimeConfig): string[] {
  const isGone = (key: string): boolean => {
    const { group, version } = splitKey(key)
    return KNOWN.includes(key) && !isServed(group, version)
  }
  return [...config].filter(([key, value]) => value !== 'false' && isGone(key)).map(([key]) => key)
}

/** True if a kind is served. Its gate must be enabled as well. */
export function createServedRule(config: RuntimeConfig, isEnabled: (gate: string) => boolean): (kind: Kind) => boolean {
  const isRequested = createRequestRule(config)
  return (kind) => (kind.gate === undefined || isEnabled(kind.gate)) && isRequested(kind)
}

/** Requested kinds that stay off because of their gate, for the log, with upstream's texts. */
export function gatedResources(config: RuntimeConfig, isEnabled: (gate: string) => boolean): string[] {
  const isRequested = createRequestRule(config)
  const kinds = groups.flatMap(({ versions }) => versions.flatMap(({ kinds: known }) => known))
  return kinds.flatMap((kind) => {
    const { gate } = kind
    if (gate === undefined || isEnabled(gate) || !isRequested(kind)) return []
    const name = gate === 'StorageVersionMigrator' ? gate : kind.kind
    return [`${name} storage is disabled because the ${gate} feature gate is disabled`]
  })
}

function createRequestRule(config: RuntimeConfig): (kind: Kind) => boolean {
  const value = (key: string): boolean | undefined => {
    const text = config.get(key)
    return text === undefined ? undefined : text !== 'false'
  }
  const byMaturity = (version: string): boolean => {
    const matching = MATURITIES.filter(([key, matches]) => config.has(key) && matches(version))
    const last = matching.at(-1)
    return last === undefined ? isStable(version) : value(last[0]) === true
  }
  return (kind) => {
    const { version, plural } = kind
    const name = kind.group === '' ? version : apiVersionOf(kind)
    return value(`${name}/${plural}`) ?? value(name) ?? byMaturity(version)
  }
}

/** `v1`, `apps/v1`, `apps/v1/deployments`; the core group may also be `/v1` or `api/v1`, for compatibility. */
function splitKey(key: string): { readonly group: string; readonly version: string; readonly resource?: string } {
  const [first = '', second, third] = key.split('/')
  if (second === undefined) return { group: '', version: first }
  if (first === 'v1') return { group: '', version: first, resource: second }
  const group = first === 'api' ? '' : first
  return { group, version: second, ...(third !== undefined && { resource: third }) }
}
