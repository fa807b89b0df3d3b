/** Which arguments and values of flags each command goes on with. Commands and flags that are not here leave it to the shell. */
import { readdir } from 'node:fs/promises'

import { GET_FORMATS } from '../printing.ts'
import { type Answer, DEFAULT, EXTENSIONS, NO_FILES, NO_SPACE, withoutFiles } from './answer.ts'
import { containersOf, kubeconfigNames, namesOf, portsOf, type Surroundings, typesOf } from './cluster.ts'

/** `args` stand before what is typed. */
export type Source = (around: Surroundings, args: readonly string[], typed: string) => Promise<Answer>

function beginning(choices: readonly string[], typed: string): string[] {
  return choices.filter((choice) => choice.startsWith(typed))
}

interface ResourceOptions {
  /** Default: all that can be read. */
  readonly types?: readonly string[]
  /** Only one object is taken. */
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
    // Who wrote TYPE/NAME once goes on so.
    return first === undefined
      ? withoutFiles(known)
      : { choices: known.map((type) => `${type}/`), directive: NO_FILES | NO_SPACE }
  }
}

/** Of `pods,secr` only the last is completed. */
async function typesBeginning(around: Surroundings, typed: string): Promise<string[]> {
  const at = typed.lastIndexOf(',') + 1
  return beginning(await typesOf(around), typed.slice(at)).map((type) => typed.slice(0, at) + type)
}

async function namesBehindSlash(around: Surroundings, typed: string): Promise<string[]> {
  const at = typed.indexOf('/')
  const type = typed.slice(0, at)
  return beginning(await namesOf(around, type), typed.slice(at + 1)).map((name) => `${type}/${name}`)
}

/** The name of one object of a type, as first argument. */
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

/** A pod, or what makes pods, as first argument. */
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

/** `8080:80`: what is typed before the colon stays. */
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

/** Containers of the pod that stands first. */
const containers: Source = async (around, [pod], typed) =>
  withoutFiles(pod === undefined ? [] : beginning(await containersOf(around, pod), typed))

function fromKubeconfig(section: 'contexts' | 'clusters' | 'users'): Source {
  return async (around, args, typed) =>
    withoutFiles(args.length > 0 ? [] : beginning(await kubeconfigNames(around, section), typed))
}

/** `NAMESPACE/POD:PATH`, `POD:PATH` or a file here. */
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
  // Where there is nothing else the shell looks for files by itself.
  const files = found.length === 0 ? [] : await filesBeginning(around.cwd, typed)
  return { choices: [...found, ...files], directive: NO_SPACE }
}

async function filesBeginning(folder: string, typed: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  const named = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name)).sort()
  return beginning(named, typed)
}

const ROLLED = ['deployment', 'daemonset', 'statefulset']
const SCALED = ['deployment', 'replicaset', 'replicationcontroller', 'statefulset']
const IMAGED = [
  'daemonsets',
  'deployments',
  'pods',
  'cronjobs',
  'replicasets',
  'replicationcontrollers',
  'statefulsets',
]

/** By the words that lead to the command. */
export const ARGUMENTS: Readonly<Record<string, Source>> = {
  annotate: resources(),
  'apply edit-last-applied': resources(),
  'apply view-last-applied': resources(),
  attach: pods,
  autoscale: resources({ types: SCALED }),
  'config delete-cluster': fromKubeconfig('clusters'),
  'config delete-context': fromKubeconfig('contexts'),
  'config delete-user': fromKubeconfig('users'),
  'config rename-context': fromKubeconfig('contexts'),
  'config set-context': fromKubeconfig('contexts'),
  'config use-context': fromKubeconfig('contexts'),
  cordon: names('node'),
  cp: copied,
  'create token': names('serviceaccount'),
  debug: resources(),
  delete: resources(),
  describe: resources(),
  drain: names('node'),
  edit: resources(),
  exec: pods,
  expose: resources({ types: ['pod', 'service', 'replicationcontroller', 'deployment', 'replicaset'] }),
  get: resources(),
  label: resources(),
  logs: podsAndContainers,
  patch: resources(),
  'port-forward': podsAndPorts,
  'rollout history': resources({ types: ROLLED }),
  'rollout pause': resources({ types: ['deployment'] }),
  'rollout restart': resources({ types: ROLLED }),
  'rollout resume': resources({ types: ['deployment'] }),
  'rollout status': resources({ types: ROLLED, isSingle: true }),
  'rollout undo': resources({ types: ROLLED }),
  scale: resources({ types: SCALED }),
  'set image': resources({ types: IMAGED, isSingle: true }),
  taint: resources({ types: ['node'] }),
  'top node': names('node'),
  'top pod': names('pod'),
  uncordon: names('node'),
}

function value(source: Source): Source {
  return (around, _args, typed) => source(around, [], typed)
}

const SUBRESOURCES: Source = () => Promise.resolve(withoutFiles(['status', 'scale', 'resize']))
const FILES: Source = () => Promise.resolve({ choices: ['json', 'yaml', 'yml'], directive: EXTENSIONS })

/** Of flags that every command has. */
const GLOBAL_VALUES: Readonly<Record<string, Source>> = {
  namespace: value(names('namespace')),
  context: value(fromKubeconfig('contexts')),
  cluster: value(fromKubeconfig('clusters')),
  user: value(fromKubeconfig('users')),
}

/** By the words that lead to the command, and the flag. */
const OWN_VALUES: Readonly<Record<string, Source>> = {
  'config set-context --namespace': value(names('namespace')),
  'create clusterrolebinding --clusterrole': value(names('clusterrole')),
  'exec --container': containers,
  'get --output': (_around, _args, typed) => Promise.resolve(withoutFiles(beginning(GET_FORMATS, typed))),
}

const LEFT_TO_SHELL: Source = () => Promise.resolve({ choices: [], directive: DEFAULT })

/** Where the value of a flag comes from. `isOwn`: it is one of the command's. */
export function valuesOf(command: string, flag: string, isOwn: boolean): Source {
  if (!isOwn) return GLOBAL_VALUES[flag] ?? LEFT_TO_SHELL
  if (flag === 'filename') return FILES
  if (flag === 'subresource') return SUBRESOURCES
  return OWN_VALUES[`${command} --${flag}`] ?? LEFT_TO_SHELL
}
