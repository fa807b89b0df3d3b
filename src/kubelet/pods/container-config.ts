/** What a runtime is told to make a container. Pure. */
import type { Container, EphemeralContainer, Pod, SeccompProfile, SecurityContext } from '#apis/core/v1.ts'
import { goJson, goQuote } from '#lib/go-text.ts'
import type { Input } from '#lib/protobuf/message.ts'
import { fnv1a } from '#model/template-hash.ts'

import { PROFILE } from '../cri/codes.ts'
import type { ContainerConfig, Device, LinuxContainerSecurityContext, Mount } from '../cri/container-messages.ts'
import type { Image } from '../cri/runtime-messages.ts'
import type { LinuxContainerResources, SecurityProfile, UserNamespace } from '../cri/sandbox-messages.ts'
import { signalNumber } from '../cri/signals.ts'
import { type ContainerGrant, NO_GRANT } from '../grants/container-grant.ts'
import { podText } from '../kubelet-notes.ts'
import { expand } from './environment.ts'
import { containerResources } from './linux-resources.ts'
import type { PodFacts } from './pod-of-node.ts'
import { groupsOf, groupsPolicyOf, LABELS, namespacesOf, podLabels } from './sandbox-config.ts'

export const ANNOTATIONS = {
  hash: 'io.kubernetes.container.hash',
  restartCount: 'io.kubernetes.container.restartCount',
  messagePath: 'io.kubernetes.container.terminationMessagePath',
  messagePolicy: 'io.kubernetes.container.terminationMessagePolicy',
  preStop: 'io.kubernetes.container.preStopHandler',
  ports: 'io.kubernetes.container.ports',
  grace: 'io.kubernetes.pod.terminationGracePeriod',
  deletionGrace: 'io.kubernetes.pod.deletionGracePeriod',
} as const

/** The user of an image: a number, or a name that only the image's own files could resolve. */
export type ImageUser = { readonly uid: number } | { readonly name: string }

/** The user as the runtime reports it in an image's status. Root, unless the image has a USER. */
export function imageUserOf({ uid, username }: Pick<Image, 'uid' | 'username'>): ImageUser {
  if (uid !== undefined) return { uid: Number(uid.value) }
  return username === '' ? { uid: 0 } : { name: username }
}

export interface ContainerQuestion {
  readonly pod: Pod
  readonly container: Container | EphemeralContainer
  readonly restartCount: number
  readonly facts: Pick<PodFacts, 'memoryBytes' | 'rootDir' | 'seccompDefault'>
  readonly environment: ReadonlyMap<string, string>
  /** Of volumes, then `/etc/hosts`, then the file for its last words. */
  readonly mounts: readonly Input<Mount>[]
  readonly devices?: readonly Input<Device>[]
  /** Default: nothing is set aside for it. */
  readonly grant?: ContainerGrant
  /** The image as the runtime knows it. */
  readonly imageRef: string
  readonly imageUser: ImageUser
  /** The container whose processes an ephemeral one looks into. */
  readonly targetId?: string | undefined
  /** As its sandbox was told. Default: those of the node. */
  readonly users?: Input<UserNamespace> | undefined
}

/** Throws when the container must not run as root, and would, or might. */
export function containerConfig(question: ContainerQuestion): Input<ContainerConfig> {
  const { pod, container, restartCount, environment, mounts, imageRef } = question
  const known = (name: string): string | undefined => environment.get(name)
  const { name, image = '', command = [], args = [], workingDir = '', stdin, stdinOnce, tty } = container
  verifyRunAsNonRoot(question)
  return {
    metadata: { name, attempt: restartCount },
    image: { image: imageRef, userSpecifiedImage: image },
    command: command.map((text) => expand(text, known)),
    args: args.map((text) => expand(text, known)),
    workingDir,
    envs: Array.from(environment, ([key, value]) => ({ key, value: Buffer.from(value) })),
    mounts: mounts.map((mount) => ({ ...mount, ...mappingsOf(question) })),
    devices: question.devices ?? [],
    cdiDevices: (question.grant?.cdiDevices ?? []).map((device) => ({ name: device })),
    labels: new Map([...podLabels(pod), [LABELS.containerName, name]]),
    annotations: new Map([...(question.grant?.annotations ?? []), ...annotationsOf(question)]),
    logPath: `${name}/${restartCount}.log`,
    stdin: stdin ?? false,
    stdinOnce: stdinOnce ?? false,
    tty: tty ?? false,
    stopSignal: signalNumber(container.lifecycle?.stopSignal),
    linux: { resources: resourcesOf(question), securityContext: securityOf(question) },
  }
}

/** Files of volumes belong to whom they would belong without users of its own. */
function mappingsOf({
  users: { uids = [], gids = [] } = {},
}: ContainerQuestion): Pick<Input<Mount>, 'uidMappings' | 'gidMappings'> {
  return uids.length === 0 ? {} : { uidMappings: uids, gidMappings: gids }
}

function resourcesOf({ pod, container, facts, grant }: ContainerQuestion): Input<LinuxContainerResources> {
  const { cpus: cpusetCpus, memoryNodes: cpusetMems, hasOwnCpus } = grant ?? NO_GRANT
  return {
    ...containerResources(pod, container, { ...facts, hasOwnCpus }),
    ...(cpusetCpus !== '' && { cpusetCpus }),
    ...(cpusetMems !== '' && { cpusetMems }),
  }
}

/** Of name and image alone, as upstream's: a kubelet finds by it whether what runs is still what is wanted. */
export function containerHash({ name, image = '' }: Container | EphemeralContainer): string {
  const json = Buffer.from(goJson({ image, name }))
  return fnv1a(Buffer.from(`([]uint8)[${[...json].join(' ')}]`)).toString(16)
}

function annotationsOf({ pod, container, restartCount }: ContainerQuestion): Map<string, string> {
  const { terminationMessagePath = '', terminationMessagePolicy = '', lifecycle, ports = [] } = container
  const { deletionGracePeriodSeconds } = pod.metadata
  const { terminationGracePeriodSeconds } = pod.spec
  const said: [string, string | undefined][] = [
    [ANNOTATIONS.hash, containerHash(container)],
    [ANNOTATIONS.restartCount, String(restartCount)],
    [ANNOTATIONS.messagePath, terminationMessagePath],
    [ANNOTATIONS.messagePolicy, terminationMessagePolicy],
    [ANNOTATIONS.deletionGrace, deletionGracePeriodSeconds?.toString()],
    [ANNOTATIONS.grace, terminationGracePeriodSeconds?.toString()],
    [ANNOTATIONS.preStop, lifecycle?.preStop === undefined ? undefined : goJson(lifecycle.preStop)],
    [ANNOTATIONS.ports, ports.length === 0 ? undefined : goJson(ports)],
  ]
  return new Map(said.filter((pair): pair is [string, string] => pair[1] !== undefined))
}

/** Throws with upstream's texts. */
function verifyRunAsNonRoot({ pod, container, imageUser }: ContainerQuestion): void {
  const own = container.securityContext
  const ofPod = pod.spec.securityContext
  if ((own?.runAsNonRoot ?? ofPod?.runAsNonRoot) !== true) return
  const where = `(pod: ${goQuote(podText(pod))}, container: ${container.name})`
  const user = own?.runAsUser ?? ofPod?.runAsUser
  if (user === 0) throw new Error(`container's runAsUser breaks non-root policy ${where}`)
  const fault = user === undefined ? nonRootFault(imageUser) : undefined
  if (fault !== undefined) throw new Error(`container has runAsNonRoot and image ${fault} ${where}`)
}

const MAX_UID = 2 ** 31 - 1

function nonRootFault(user: ImageUser): string | undefined {
  if ('name' in user) return `has non-numeric user (${user.name}), cannot verify user is non-root`
  const { uid } = user
  if (uid === 0) return 'will run as root'
  if (uid > 0 && uid <= MAX_UID) return undefined
  const range = `must be between 0 and ${MAX_UID}, inclusive`
  return `has an invalid user id (${uid}). (Must be 1-(${MAX_UID})): ${range}`
}

const MASKED = [
  '/proc/asound',
  '/proc/acpi',
  '/proc/interrupts',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/sys/firmware',
  '/sys/devices/virtual/powercap',
]
const READ_ONLY = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger']

function securityOf(question: ContainerQuestion): Input<LinuxContainerSecurityContext> {
  const { pod, container, imageUser, targetId } = question
  const own = container.securityContext ?? {}
  const ofPod = pod.spec.securityContext ?? {}
  const isUnmasked = own.procMount === 'Unmasked'
  const runAsGroup = own.runAsGroup ?? ofPod.runAsGroup
  return {
    ...capabilitiesOf(own),
    privileged: own.privileged ?? false,
    namespaceOptions: namespacesOf(pod.spec, { targetId, users: question.users }),
    selinuxOptions: own.seLinuxOptions ?? ofPod.seLinuxOptions,
    ...userOf(own.runAsUser ?? ofPod.runAsUser, imageUser),
    ...(runAsGroup !== undefined && { runAsGroup: { value: runAsGroup } }),
    readonlyRootfs: own.readOnlyRootFilesystem ?? false,
    supplementalGroups: groupsOf(pod.spec),
    supplementalGroupsPolicy: groupsPolicyOf(pod.spec),
    noNewPrivs: own.allowPrivilegeEscalation === false,
    maskedPaths: isUnmasked ? [] : MASKED,
    readonlyPaths: isUnmasked ? [] : READ_ONLY,
    seccomp: seccompOf(own.seccompProfile ?? ofPod.seccompProfile, question.facts),
    ...appArmorOf(own.appArmorProfile ?? ofPod.appArmorProfile),
  }
}

function capabilitiesOf({ capabilities }: SecurityContext): Input<LinuxContainerSecurityContext> {
  if (capabilities === undefined) return {}
  const { add = [], drop = [] } = capabilities
  return { capabilities: { addCapabilities: add, dropCapabilities: drop } }
}

function userOf(runAsUser: number | undefined, image: ImageUser): Input<LinuxContainerSecurityContext> {
  if (runAsUser !== undefined) return { runAsUser: { value: runAsUser } }
  return 'name' in image ? { runAsUsername: image.name } : { runAsUser: { value: image.uid } }
}

function seccompOf(
  profile: SeccompProfile | undefined,
  { rootDir, seccompDefault = false }: ContainerQuestion['facts'],
): Input<SecurityProfile> {
  const { type } = profile ?? { type: seccompDefault ? 'RuntimeDefault' : 'Unconfined' }
  if (type === 'RuntimeDefault') return { profileType: PROFILE.runtimeDefault }
  if (type !== 'Localhost') return { profileType: PROFILE.unconfined }
  return { profileType: PROFILE.localhost, localhostRef: `${rootDir}/seccomp/${profile?.localhostProfile ?? ''}` }
}

interface AppArmor {
  readonly type: string
  readonly localhostProfile?: string
}

/** Said twice: runtimes of old read the text. */
function appArmorOf(profile: AppArmor | undefined): Input<LinuxContainerSecurityContext> {
  switch (profile?.type) {
    case 'RuntimeDefault':
      return { apparmor: { profileType: PROFILE.runtimeDefault }, apparmorProfile: 'runtime/default' }
    case 'Unconfined':
      return { apparmor: { profileType: PROFILE.unconfined }, apparmorProfile: 'unconfined' }
    case 'Localhost': {
      const { localhostProfile: localhostRef = '' } = profile
      return {
        apparmor: { profileType: PROFILE.localhost, localhostRef },
        apparmorProfile: `localhost/${localhostRef}`,
      }
    }
    default:
      return {}
  }
}
