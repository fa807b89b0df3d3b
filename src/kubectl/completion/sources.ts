/** Finds the completion choices that commands declare. The shell itself completes all other arguments and flags. */
import { readdir } from 'node:fs/promises'

import type { Choices } from '../choices.ts'
import type { Command } from '../command.ts'
import { type Answer, DEFAULT, EXTENSIONS, NO_FILES, NO_SPACE, withoutFiles } from './answer.ts'
import { containersOf, kubeconfigNames, namesOf, portsOf, type CompletionContext, typesOf } from './cluster.ts'

/** `args` are the arguments before the typed word. */
export type Source = (around: CompletionContext, args: readonly string[], typed: string) => Promise<Answer>

function beginning(choices: readonly string[], typed: string): string[] {
  return choices.filter((choice) => choice.startsWith(typed))
}

interface ResourceOptions {
  /** All readable resources by default. */
  readonly types?: readonly string[]
  /** The command accepts a single object. */
  readonly isSingle?: boolean
}

/** `TYPE NAME…` and `TYPE/NAME…`. */
function resources({ types, isSingle = false }: ResourceOptions = {}): Source {
  return async (around, args, typed) => {
    const [first, ...others] = args
    if (first !== undefined && !first.includes('/')) {
      if (isSingle && others.length > 0) return withoutFiles([])
      const names = beginning(await namesOf(around, first), typed)
      return withoutFiles(names.filter((name) => !others.includes(name)))
    }
    if (isSingle && first !== undefined) return withoutFiles([])
    if (typed.includes('/')) {
      return withoutFiles((await namesBehindSlash(around, typed)).filter((name) => !args.includes(name)))
    }
    const known = types === undefined ? await typesBeginning(around, typed) : beginning(types, typed)
    // After one TYPE/NAME, further arguments have that form.
    return first === undefined
      ? withoutFiles(known)
      : { choices: known.map((type) => `${type}/`), directive: NO_FILES | NO_SPACE }
  }
}

/** In `pods,secr` only the last part is completed. */
async function typesBeginning(around: CompletionContext, typed: string): Promise<string[]> {
  const at = typed.lastIndexOf(',') + 1
  return beginning(await typesOf(around), typed.slice(at)).map((type) => typed.slice(0, at) + type)
}

async function namesBehindSlash(around: CompletionContext, typed: string): Promise<string[]> {
  const at = typed.indexOf('/')
  const type = typed.slice(0, at)
  return beginning(await namesOf(around, type), typed.slice(at + 1)).map((name) => `${type}/${name}`)
}

/** The first argument is the name of one object of the type. */
function names(type: string): Source {
  return async (around, args, typed) =>
    withoutFiles(args.length > 0 ? [] : beginning(await namesOf(around, type), typed))
}

const WITH_PODS = [
  'daemonsets',
  'deployments',
  'pods',
  'jobs',
  'replicasets',
  'replicationcontrollers',
  'services',
  'statefulsets',
]

/** The first argument is a pod or a workload. */
const pods: Source = async (around, args, typed) => {
  if (args.length > 0) return withoutFiles([])
  if (typed.includes('/')) return withoutFiles(await namesBehindSlash(around, typed))
  const found = beginning(await namesOf(around, 'pod'), typed)
  const types = beginning(WITH_PODS, typed).map((type) => `${type}/`)
  return { choices: [...found, ...types], directive: found.length > 0 ? NO_FILES : NO_FILES | NO_SPACE }
}

const podsAndContainers: Source = async (around, args, typed) => {
  const [pod, ...others] = args
  if (pod === undefined) return pods(around, args, typed)
  return withoutFiles(others.length > 0 ? [] : beginning(await containersOf(around, pod), typed))
}

/** In `8080:80` the part before the colon stays. */
const podsAndPorts: Source = async (around, args, typed) => {
  const [target, ...others] = args
  if (target === undefined) return pods(around, args, typed)
  const [local = ''] = typed.split(':')
  const ports = others.length > 0 ? [] : await portsOf(around, target)
  return withoutFiles(
    beginning(
      ports.map((port) => `${typed === '' ? port : local}:${port}`),
      typed,
    ),
  )
}

/** The containers of the pod in the first argument. */
const containers: Source = async (around, [pod], typed) =>
  withoutFiles(pod === undefined ? [] : beginning(await containersOf(around, pod), typed))

function fromKubeconfig(section: 'contexts' | 'clusters' | 'users'): Source {
  return async (around, args, typed) =>
    withoutFiles(args.length > 0 ? [] : beginning(await kubeconfigNames(around, section), typed))
}

/** Completes `NAMESPACE/POD:PATH`, `POD:PATH` or a local file. */
const copied: Source = async (around, args, typed) => {
  const isElsewhere = args.length > 0 || /^[/.~]/.test(typed) || typed.includes(':')
  if (isElsewhere) return { choices: [], directive: NO_SPACE }
  const at = typed.indexOf('/')
  if (at > 0) {
    const namespace = typed.slice(0, at)
    const found = (await namesOf(around, 'pod', namespace)).map((name) => `${namespace}/${name}:`)
    return { choices: beginning(found, typed), directive: NO_SPACE }
  }
  const namespaces = beginning(await namesOf(around, 'namespace'), typed).map((name) => `${name}/`)
  const found = [...namespaces, ...beginning(await namesOf(around, 'pod'), typed).map((name) => `${name}:`)]
  if (typed === '') return { choices: [...found, './', '/'], directive: NO_SPACE }
  // Without other choices the shell completes file names.
  const files = found.length === 0 ? [] : await filesBeginning(around.cwd, typed)
  return { choices: [...found, ...files], directive: NO_SPACE }
}

async function filesBeginning(folder: string, typed: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  const named = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name)).sort()
  return beginning(named, typed)
}

/** Other arguments are the shell's. */
function words(known: readonly string[]): Source {
  return async (_around, args, typed) =>
    args.length > 0 ? { choices: [], directive: DEFAULT } : withoutFiles(beginning(known, typed))
}

const NAMED = {
  resources: resources(),
  pods,
  'pods and containers': podsAndContainers,
  'pods and ports': podsAndPorts,
  containers,
  'copied files': copied,
} satisfies Readonly<Record<string, Source>>

function sourceOf(choices: Choices): Source {
  if (typeof choices === 'string') return NAMED[choices]
  if ('resources' in choices) return resources({ types: choices.resources, isSingle: choices.isSingle === true })
  if ('names' in choices) return names(choices.names)
  if ('kubeconfig' in choices) return fromKubeconfig(choices.kubeconfig)
  return words(choices.words)
}

/** The source of the arguments; undefined if the command declares none. */
export function argumentsOf({ completes }: Command): Source | undefined {
  return completes === undefined ? undefined : sourceOf(completes)
}

const FILES: Source = () => Promise.resolve({ choices: ['json', 'yaml', 'yml'], directive: EXTENSIONS })
const LEFT_TO_SHELL: Source = () => Promise.resolve({ choices: [], directive: DEFAULT })

/** Values of global flags. */
const GLOBAL_VALUES: Readonly<Record<string, Choices>> = {
  namespace: { names: 'namespace' },
  context: { kubeconfig: 'contexts' },
  cluster: { kubeconfig: 'clusters' },
  user: { kubeconfig: 'users' },
}

/** Finds the source of a flag value. `isOwn`: the flag belongs to the command. */
export function valuesOf({ completesFlags = {} }: Command, flag: string, isOwn: boolean): Source {
  if (isOwn && flag === 'filename') return FILES
  if (isOwn && flag === 'subresource') return () => Promise.resolve(withoutFiles(['status', 'scale', 'resize']))
  const choices = (isOwn ? completesFlags : GLOBAL_VALUES)[flag]
  if (choices === undefined) return LEFT_TO_SHELL
  const source = sourceOf(choices)
  if (choices === 'containers') return source
  // Arguments before the flag do not count.
  return (around, _args, typed) => source(around, [], typed)
}
