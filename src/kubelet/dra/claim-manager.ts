/**
 * Dynamic resource allocation on this node: drivers prepare the claims of a pod before its containers start, and
 * unprepare unused claims. A checkpoint precedes each driver call, so that a restarted kubelet can undo the call.
 */
import type { Container, EphemeralContainer, Pod } from '#apis/core/v1.ts'
import { ResourceClaims, ResourceSlices } from '#apis/resource/v1.ts'
import type { Claim, DRAPlugin, Device } from '#apis/wire/dra.ts'
import type { PluginInfo } from '#apis/wire/plugin-registration.ts'
import type { ApiClient } from '#client/api-client.ts'
import { callText } from '#cri/call-text.ts'
import type { Clock, Timer } from '#lib/clock.ts'
import { createGrpcClient, type GrpcClient } from '#lib/grpc/client.ts'
import type { Logger } from '#lib/log/log.ts'
import type { Random } from '#lib/random.ts'

import { readIntactCheckpoint, writeCheckpoint } from '../checkpoint/checkpoint.ts'
import type { KubeletMeters } from '../metrics/kubelet-families.ts'
import type { PluginHandler } from '../plugins/plugin-watcher.ts'
import { KeyedMutex } from '../volumes/keyed-mutex.ts'
import { CLAIM_STATES, type ClaimState, type DeviceOfClaim } from './claim-state.ts'
import { DRA_SERVICES } from './dra-service.ts'
import { cdiDevicesOf, checkClaim, claimNamesOf, driversOf } from './pod-claims.ts'

export interface ClaimManagerOptions {
  /** `dra_manager_state`. */
  readonly path: string
  readonly nodeName: string
  /** As `system:node:<name>`. */
  readonly client: ApiClient
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly signal: AbortSignal
  readonly meters: KubeletMeters
}

interface DraDriver {
  readonly endpoint: string
  readonly client: GrpcClient
  readonly methods: DRAPlugin
}

const CALL_MS = 45_000
/** Time after which the ResourceSlices of a missing driver are deleted. */
const DELETE_SLICES_MS = 30_000
/** One operation at a time, because the checkpoint contains all claims. */
const ALL = 'claims'

export class ClaimManager implements PluginHandler {
  readonly #options: ClaimManagerOptions
  readonly #drivers = new Map<string, DraDriver>()
  readonly #deletionTimers = new Map<string, Timer>()
  /** By namespace and name. */
  readonly #claims = new Map<string, ClaimState>()
  /** UIDs of claims prepared since the kubelet started. */
  readonly #prepared = new Set<string>()
  readonly #mutex = new KeyedMutex()

  constructor(options: ClaimManagerOptions) {
    this.#options = options
  }

  async start(): Promise<void> {
    const { signal } = this.#options
    const claims = await readIntactCheckpoint(this.#options.path, CLAIM_STATES)
    for (const claim of claims ?? []) this.#claims.set(keyOf(claim), claim)
    this.#count()
    signal.addEventListener('abort', () => {
      for (const { client } of this.#drivers.values()) client.close()
      for (const timer of this.#deletionTimers.values()) timer.cancel()
    })
  }

  validate({ name, supportedVersions }: PluginInfo): void {
    if (supportedVersions.length === 0) throw new Error('empty list for supported versions')
    if (methodsFor(supportedVersions) === undefined) {
      const list = `[${supportedVersions.map((text) => JSON.stringify(text)).join(' ')}]`
      throw new Error(`invalid versions of plugin ${name}: none of the versions in ${list} is supported`)
    }
  }

  async register({ name, endpoint, supportedVersions }: PluginInfo): Promise<void> {
    const { clock, random } = this.#options
    const methods = methodsFor(supportedVersions)
    if (methods === undefined) return
    this.#deletionTimers.get(name)?.cancel()
    this.#deletionTimers.delete(name)
    this.#drivers.get(name)?.client.close()
    const client = createGrpcClient({ targets: [{ path: endpoint }], clock, random })
    this.#drivers.set(name, { endpoint, client, methods })
  }

  async deregister({ name, endpoint }: PluginInfo): Promise<void> {
    const driver = this.#drivers.get(name)
    if (driver?.endpoint !== endpoint) return
    driver.client.close()
    this.#drivers.delete(name)
    const { clock } = this.#options
    this.#deletionTimers.set(
      name,
      clock.after(DELETE_SLICES_MS, () => void this.#deleteSlices(name), { background: true }),
    )
  }

  /** Deletes the ResourceSlices of a missing driver, so that its devices are not allocated. */
  async #deleteSlices(driver: string): Promise<void> {
    const { client, nodeName, log } = this.#options
    const fieldSelector = `spec.nodeName=${nodeName},spec.driver=${driver}`
    try {
      const { items } = await client.list(ResourceSlices, { fieldSelector })
      for (const { metadata } of items) await client.delete(ResourceSlices, { name: metadata.name ?? '' })
    } catch (error) {
      log.error(error, 'Failed to delete ResourceSlices', { driver })
    }
  }

  #driver(name: string): DraDriver {
    const driver = this.#drivers.get(name)
    if (driver === undefined) throw new Error(`DRA driver ${name} is not registered`)
    return driver
  }

  /** Rejects with the reason why the pod has to wait. */
  prepare(pod: Pod): Promise<void> {
    const names = this.#namesOf(pod)
    if (names.length === 0) return Promise.resolve()
    return this.#mutex
      .run(ALL, () => this.#prepareAll(pod, names))
      .catch((error: unknown) => {
        throw new Error(`prepare dynamic resources: ${(error as Error).message}`, { cause: error })
      })
  }

  #namesOf(pod: Pod): string[] {
    const { resourceClaims = [] } = pod.spec
    const { extendedResourceClaimStatus: extended } = pod.status
    const ofSpec = resourceClaims.length === 0 ? [] : [...claimNamesOf(pod).values()]
    return [...new Set([...ofSpec, ...(extended === undefined ? [] : [extended.resourceClaimName])])]
  }

  async #prepareAll(pod: Pod, names: readonly string[]): Promise<void> {
    const { namespace = '', uid: podUid = '' } = pod.metadata
    const batches = new Map<string, Claim[]>()
    for (const name of names) {
      const there = this.#claims.get(`${namespace}/${name}`)
      if (there !== undefined && this.#prepared.has(there.ClaimUID) && there.PodUIDs[podUid] !== undefined) continue
      const claim = await this.#recordClaim(pod, name)
      if (this.#prepared.has(claim.ClaimUID)) continue
      const ref = { namespace, name, uid: claim.ClaimUID }
      for (const driver of Object.keys(claim.DriverState)) batches.set(driver, [...(batches.get(driver) ?? []), ref])
    }
    if (batches.size === 0) return
    for (const [driver, claims] of batches) await this.#prepareBy(driver, claims)
    for (const { uid } of [...batches.values()].flat()) this.#prepared.add(uid)
    await this.#write()
  }

  /** Reads the claim and records in the checkpoint that the pod uses it. */
  async #recordClaim(pod: Pod, name: string): Promise<ClaimState> {
    const { namespace = '', uid: podUid = '' } = pod.metadata
    const { client } = this.#options
    const object = await client.get(ResourceClaims, { namespace, name }).catch((error: Error) => {
      throw new Error(`failed to fetch ResourceClaim ${name} referenced by pod ${pod.metadata.name}: ${error.message}`)
    })
    checkClaim(pod, object)
    const drivers = driversOf(object)
    for (const driver of drivers) this.#driver(driver)
    const { uid = '' } = object.metadata
    const there = this.#claims.get(`${namespace}/${name}`)
    if (there !== undefined && there.ClaimUID !== uid) {
      const why = '(previous pod force-deleted?!)'
      throw new Error(
        `old ResourceClaim with same name ${name} and different UID ${there.ClaimUID} still exists ${why}`,
      )
    }
    const claim: ClaimState = {
      ClaimUID: uid,
      ClaimName: name,
      Namespace: namespace,
      PodUIDs: { ...there?.PodUIDs, [podUid]: {} },
      DriverState: there?.DriverState ?? Object.fromEntries(drivers.map((driver) => [driver, { Devices: null }])),
    }
    this.#claims.set(keyOf(claim), claim)
    await this.#write()
    return claim
  }

  async #prepareBy(name: string, claims: readonly Claim[]): Promise<void> {
    const { client, methods } = this.#driver(name)
    const options = { timeoutMs: CALL_MS, waitForReady: true }
    const { claims: answers } = await client
      .unary(methods.nodePrepareResources, { claims }, options)
      .catch((error: unknown) => {
        throw new Error(`NodePrepareResources: ${callText(error)}`, { cause: error })
      })
    for (const [uid, { error, devices }] of answers) {
      const claim = [...this.#claims.values()].find((one) => one.ClaimUID === uid)
      if (claim === undefined) throw new Error(`NodePrepareResources returned result for unknown claim UID ${uid}`)
      if (error !== '') throw new Error(`NodePrepareResources failed for ResourceClaim ${claim.ClaimName}: ${error}`)
      const DriverState = { ...claim.DriverState, [name]: { Devices: devices.map(stateOf) } }
      this.#claims.set(keyOf(claim), { ...claim, DriverState })
    }
    const skipped = claims.length - answers.size
    if (skipped !== 0) throw new Error(`NodePrepareResources skipped ${skipped} ResourceClaims`)
  }

  cdiDevicesOf(pod: Pod, container: Container | EphemeralContainer): string[] {
    const { namespace = '' } = pod.metadata
    const ofNamespace = [...this.#claims.values()].filter((claim) => claim.Namespace === namespace)
    return cdiDevicesOf(pod, container, new Map(ofNamespace.map((claim) => [claim.ClaimName, claim])))
  }

  /** Claims of a pod. */
  claimsOf(podUid: string): readonly ClaimState[] {
    return [...this.#claims.values()].filter(({ PodUIDs }) => PodUIDs[podUid] !== undefined)
  }

  uids(): readonly string[] {
    return [...new Set([...this.#claims.values()].flatMap(({ PodUIDs }) => Object.keys(PodUIDs)))]
  }

  /** Unprepares the claims that no other pod uses. */
  release(podUid: string): Promise<void> {
    if (this.claimsOf(podUid).length === 0) return Promise.resolve()
    return this.#mutex.run(ALL, async () => {
      for (const claim of this.claimsOf(podUid)) await this.#releaseClaim(claim, podUid)
      await this.#write()
    })
  }

  async #releaseClaim(claim: ClaimState, podUid: string): Promise<void> {
    const others = Object.keys(claim.PodUIDs).filter((uid) => uid !== podUid)
    if (others.length > 0) {
      const PodUIDs = Object.fromEntries(others.map((uid) => [uid, {}]))
      this.#claims.set(keyOf(claim), { ...claim, PodUIDs })
      return
    }
    const ref = { namespace: claim.Namespace, name: claim.ClaimName, uid: claim.ClaimUID }
    for (const name of Object.keys(claim.DriverState)) await this.#unprepareBy(name, ref)
    this.#claims.delete(keyOf(claim))
    this.#prepared.delete(claim.ClaimUID)
  }

  async #unprepareBy(name: string, ref: Claim): Promise<void> {
    const { client, methods } = this.#driver(name)
    const options = { timeoutMs: CALL_MS, waitForReady: true }
    const { claims } = await client
      .unary(methods.nodeUnprepareResources, { claims: [ref] }, options)
      .catch((error: unknown) => {
        throw new Error(`NodeUnprepareResources: ${callText(error)}`, { cause: error })
      })
    const answer = claims.get(ref.uid)
    if (answer === undefined) throw new Error('NodeUnprepareResources skipped 1 ResourceClaims')
    if (answer.error === '') return
    throw new Error(`NodeUnprepareResources failed for ResourceClaim ${ref.name}: ${answer.error}`)
  }

  /** Resets the metric, so that unused drivers disappear. */
  #count(): void {
    const family = this.#options.meters.family('dra_resource_claims_in_use')
    family.clear()
    family.labels('<any>').set(this.#claims.size)
    for (const { DriverState } of this.#claims.values()) {
      for (const driver of Object.keys(DriverState)) family.labels(driver).inc()
    }
  }

  async #write(): Promise<void> {
    const { path, clock } = this.#options
    this.#count()
    await clock.during(writeCheckpoint(path, CLAIM_STATES, [...this.#claims.values()])).catch((error: Error) => {
      throw new Error(`checkpoint ResourceClaim state: ${error.message}`, { cause: error })
    })
  }
}

const keyOf = ({ Namespace, ClaimName }: ClaimState): string => `${Namespace}/${ClaimName}`

const methodsFor = (versions: readonly string[]): DRAPlugin | undefined =>
  DRA_SERVICES.find(([version]) => versions.includes(version))?.[1]

const stateOf = (device: Device): DeviceOfClaim => ({
  PoolName: device.poolName,
  DeviceName: device.deviceName,
  ShareID: device.shareId ?? null,
  RequestNames: device.requestNames,
  CDIDeviceIDs: device.cdiDeviceIds,
})
