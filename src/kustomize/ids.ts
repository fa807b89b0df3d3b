/** Resource ids of kustomize: group, version, kind, name and namespace, with comparisons. */
import { catalog } from '#apis/catalog.ts'
import { goQuote } from '#lib/go/text.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { stringifyYaml } from '#lib/yaml/write.ts'

export interface Gvk {
  readonly group: string
  readonly version: string
  readonly kind: string
}

export interface Id extends Gvk {
  readonly name: string
  readonly namespace: string
}

/** A build error with upstream's text. */
export class KustomizeError extends Error {
  override readonly name: string = 'KustomizeError'
}

/** The same error with a context in front. */
export function within(prefix: string, error: unknown): KustomizeError {
  return new KustomizeError(`${prefix}: ${(error as Error).message}`, { cause: error })
}

/** A built-in plugin with an invalid configuration. */
export function misconfigured(plugin: string, config: object, reason: string): KustomizeError {
  return new KustomizeError(
    `trouble configuring builtin ${plugin} with config: \`\n${stringifyYaml(config)}\`: ${reason}`,
  )
}

export function gvkOf({ apiVersion, kind }: JsonObject): Gvk {
  const text = typeof apiVersion === 'string' ? apiVersion : ''
  const at = text.indexOf('/')
  return {
    group: at < 0 ? '' : text.slice(0, at),
    version: at < 0 ? text : text.slice(at + 1),
    kind: typeof kind === 'string' ? kind : '',
  }
}

export function gvkText({ group, version, kind }: Gvk): string {
  return [kind || '[noKind]', version || '[noVer]', group || '[noGrp]'].join('.')
}

/** `Deployment.v1.apps/web.[noNs]`. */
export function idText(id: Id): string {
  return `${gvkText(id)}/${id.name || '[noName]'}.${id.namespace || '[noNs]'}`
}

/** Go's `%#v` of the struct. */
export function idGoText(id: Id): string {
  const gvk = `resid.Gvk{Group:${goQuote(id.group)}, Version:${goQuote(id.version)}, Kind:${goQuote(id.kind)}, isClusterScoped:${isClusterScoped(id)}}`
  return `resid.ResId{Gvk:${gvk}, Name:${goQuote(id.name)}, Namespace:${goQuote(id.namespace)}}`
}

let clusterScoped: ReadonlySet<string> | undefined

/** Unknown kinds count as namespaced. */
export function isClusterScoped({ group, version, kind }: Gvk): boolean {
  clusterScoped ??= new Set(
    catalog.flatMap(([name, versions]) =>
      versions.flatMap(([each, resources]) =>
        resources.filter(({ namespaced }) => namespaced === false).map((one) => `${name}/${each}/${one.kind}`),
      ),
    ),
  )
  return clusterScoped.has(`${group}/${version}/${kind}`)
}

const NOWHERE = '_non_namespaceable_'

export function effectiveNamespace(id: Id): string {
  return isClusterScoped(id) ? NOWHERE : id.namespace || 'default'
}

export function sameGvk(one: Gvk, other: Gvk): boolean {
  return one.group === other.group && one.version === other.version && one.kind === other.kind
}

export function sameId(one: Id, other: Id): boolean {
  return one.name === other.name && sameGvk(one, other) && effectiveNamespace(one) === effectiveNamespace(other)
}

/** Empty selector fields match anything. */
export function isSelected(id: Gvk, selector: Partial<Gvk>): boolean {
  const fits = (wanted: string | undefined, found: string): boolean => !wanted || wanted === found
  return fits(selector.group, id.group) && fits(selector.version, id.version) && fits(selector.kind, id.kind)
}
