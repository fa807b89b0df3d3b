/** Parses, merges and prints environment variables of containers. */
import type { EnvVar, EnvVarSource } from '#apis/core/v1.ts'
import { goQuote } from '#lib/go/text.ts'
import { envVarName } from '#meta/validation/names.ts'

import { KubectlError } from '../errors.ts'

export interface EnvironmentChanges {
  readonly set: readonly EnvVar[]
  readonly removed: readonly string[]
}

/** Resources come first. Throws KubectlError. */
export function splitEnvironment(args: readonly string[]): { resources: string[]; specs: string[] } {
  const isSpec = (arg: string): boolean => /^.+=/s.test(arg) || arg.endsWith('-')
  const first = args.findIndex(isSpec)
  if (first < 0) return { resources: [...args], specs: [] }
  const specs = args.slice(first)
  if (!specs.every(isSpec)) {
    throw new KubectlError(`all resources must be specified before environment changes: ${args.join(' ')}`)
  }
  return { resources: args.slice(0, first), specs }
}

/** `-` reads standard input. Throws KubectlError. */
export function parseEnvironment(specs: readonly string[], typed: string): EnvironmentChanges {
  const set: EnvVar[] = []
  const removed: string[] = []
  for (const spec of specs) {
    const at = spec.indexOf('=')
    if (spec === '-') set.push(...typedVariables(typed))
    else if (at >= 0) {
      const name = spec.slice(0, at)
      const problems = envVarName(name)
      if (problems.length > 0) {
        throw new KubectlError(`${goQuote(name)} is not a valid key name: ${problems.join(';')}`)
      }
      set.push({ name, value: spec.slice(at + 1) })
    } else if (spec.endsWith('-')) removed.push(spec.slice(0, -1))
    else throw new KubectlError(`unknown environment variable: ${spec}`)
  }
  if (removed.some((name) => set.some((one) => one.name === name))) {
    throw new KubectlError('can not both modify and remove the same environment variable in the same command')
  }
  return { set, removed }
}

function typedVariables(text: string): EnvVar[] {
  return text.split(/\r?\n/).flatMap((line) => {
    const [spec = ''] = line.split('#')
    const at = spec.indexOf('=')
    return at < 0 ? [] : [{ name: spec.slice(0, at), value: spec.slice(at + 1) }]
  })
}

/** Changed variables keep their position; a variable that is both set and removed is removed. */
export function changedEnvironment(had: readonly EnvVar[], { set, removed }: EnvironmentChanges): EnvVar[] {
  const done = new Set(removed)
  const kept = had.flatMap((one) => {
    if (done.has(one.name)) return []
    const next = set.find(({ name }) => name === one.name)
    if (next === undefined) return [one]
    done.add(one.name)
    return [next]
  })
  const added = set.filter(({ name }) => !done.has(name) && done.add(name) !== undefined)
  return [...kept, ...added]
}

/** Throws KubectlError. */
export function refuseOverwriting(had: readonly EnvVar[], set: readonly EnvVar[]): void {
  for (const { name, value = '' } of set) {
    const known = had.find((one) => one.name === name)
    if (known === undefined || (known.value ?? '') === value) continue
    throw new KubectlError(`'${name}' already has a value (${known.value ?? ''}), and --overwrite is false`)
  }
}

/** Describes the source of a value. */
export function sourceText({ configMapKeyRef, secretKeyRef, fieldRef, resourceFieldRef }: EnvVarSource): string {
  if (configMapKeyRef !== undefined) return `configmap ${configMapKeyRef.name ?? ''}, key ${configMapKeyRef.key}`
  if (secretKeyRef !== undefined) return `secret ${secretKeyRef.name ?? ''}, key ${secretKeyRef.key}`
  if (fieldRef !== undefined) return `field path ${fieldRef.fieldPath}`
  if (resourceFieldRef === undefined) return 'invalid valueFrom'
  const { containerName = '', resource } = resourceFieldRef
  return `resource field ${containerName === '' ? '' : `${containerName}/`}${resource}`
}
