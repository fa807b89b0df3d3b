/** An admission plugin: what it looks at, what it changes, what it refuses. */
import type { Attributes, Operation } from '#apiserver/registry/admission.ts'

export interface AdmissionPlugin {
  /** Upstream's name, for --enable-admission-plugins and metrics. */
  readonly name: string
  readonly on: readonly Operation[]
  /** `pods`, `deployments.apps`, `pods/binding`; absent: everything. A resource without part means itself only. */
  readonly resources?: readonly string[]
  /** Changes `attributes.object` in place; throws StatusError to refuse. */
  mutate?(attributes: Attributes): void | Promise<void>
  /** Throws StatusError to refuse; changes nothing. */
  validate?(attributes: Attributes): void | Promise<void>
}

export function defineAdmission(plugin: AdmissionPlugin): AdmissionPlugin {
  return plugin
}

/** Whether the plugin has anything to say about this write. */
export function concerns({ on, resources }: AdmissionPlugin, { operation, kind, subresource }: Attributes): boolean {
  if (!on.includes(operation)) return false
  if (resources === undefined) return true
  const name = kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`
  return resources.includes(subresource === '' ? name : `${name}/${subresource}`)
}
