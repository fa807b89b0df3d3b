/**
 * Stores the desired and the last built state of a cluster: in `<file>.rkestate` beside cluster.yml and in the Secret
 * `full-cluster-state`, in RKE's layout. It contains private keys: only its owner may read it, and a passphrase may
 * encrypt it.
 */
import { createCipheriv, createDecipheriv, scryptSync } from 'node:crypto'
import { gunzipSync, gzipSync } from 'node:zlib'

import type { Random } from '#lib/random.ts'

import type { ClusterFile, ClusterNode } from '../cluster.ts'
import { certificatePaths } from '../host-paths.ts'
import type { Bundle, BundleEntry } from '../pki/bundle.ts'
import { planCertificates } from '../pki/plan.ts'
import type { Stage } from './stages.ts'

export interface ClusterState {
  readonly rkeConfig: ClusterFile
  readonly certificatesBundle: Bundle
  /** The text of the EncryptionConfiguration; empty: no encryption. */
  readonly encryptionConfig: string
}

export interface FullState {
  readonly desiredState?: ClusterState
  /** Absent until a cluster has been built. */
  readonly currentState?: ClusterState
  /** Certificates of a cluster that RKE built, whose configuration has another format. */
  readonly adopted?: Bundle
  /** Machines that may have parts of the cluster but are in neither state. */
  readonly leaving?: readonly ClusterNode[]
  /** The remaining stages, beginning with the current one; absent: only that. */
  readonly stages?: readonly Stage[]
  /** The name of a snapshot whose restore has begun: etcd may contain anything until it is done. */
  readonly restoring?: string
}

/** `sealed`: a passphrase is needed. `passphrase`: it is wrong. `unreadable`: the file is not a state. */
export type StateErrorCode = 'sealed' | 'passphrase' | 'unreadable'

export class StateError extends Error {
  readonly code: StateErrorCode

  constructor(code: StateErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StateError'
    this.code = code
  }
}

/** Distinguishes our states from RKE's, whose configuration has another format. */
const FORMAT = 1

/** `cluster.rkestate` beside `cluster.yml`. */
export function stateFileOf(clusterFile: string): string {
  return `${clusterFile.replace(/\.[^./]*$/, '')}.rkestate`
}

/** JSON with RKE's indentation, encrypted if there is a passphrase. */
export function encodeState(
  state: Omit<FullState, 'adopted'>,
  seal?: { readonly passphrase: string; readonly random: Random },
): string {
  const plain = {
    hyperkube: FORMAT,
    desiredState: outward(state.desiredState),
    currentState: outward(state.currentState),
    ...((state.leaving ?? []).length > 0 && { leaving: state.leaving }),
    ...((state.stages ?? []).length > 0 && { stages: state.stages }),
    ...(state.restoring !== undefined && { restoring: state.restoring }),
  }
  const text = `${JSON.stringify(plain, undefined, 2)}\n`
  return seal ? sealText(text, seal) : text
}

/** Throws StateError. For a state of RKE it returns the certificates. */
export function decodeState(text: string, passphrase?: string): FullState {
  const value = parse(text)
  if ('sealed' in value) {
    if (passphrase === undefined) throw new StateError('sealed', 'The state is encrypted; provide its passphrase')
    return decodeState(openText(value['sealed'] as EncryptedState, passphrase))
  }
  if (!('hyperkube' in value)) return adopt(value)
  const [desiredState, currentState] = ['desiredState', 'currentState'].map((key) => inward(value, key))
  const { leaving, stages, restoring } = value as Pick<FullState, 'leaving' | 'stages' | 'restoring'>
  return {
    ...(desiredState ? { desiredState } : {}),
    ...(currentState ? { currentState } : {}),
    ...(leaving && { leaving }),
    ...(stages && { stages }),
    ...(restoring !== undefined && { restoring }),
  }
}

function parse(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch (cause) {
    throw new StateError('unreadable', 'The state is not JSON; restore it from a copy or from the cluster', { cause })
  }
  throw new StateError('unreadable', 'The state is not an object; restore it from a copy or from the cluster')
}

/** With RKE's details of each certificate, for its tools. */
function outward(state: ClusterState | undefined): object {
  if (!state) return {}
  const plans = new Map(planCertificates(state.rkeConfig).map((plan) => [plan.name, plan]))
  const certificates = Object.entries(state.certificatesBundle).map(([name, entry]) => {
    const plan = plans.get(name)
    const { certificate, key, kubeconfig } = certificatePaths(state.rkeConfig, name)
    const variable = name.toUpperCase().replaceAll('-', '_')
    const described = {
      ...entry,
      config: '',
      name,
      commonName: plan?.commonName ?? '',
      ouName: plan?.organizations[0] ?? '',
      envName: variable,
      path: certificate,
      keyEnvName: `${variable}_KEY`,
      keyPath: key,
      configEnvName: plan?.hasKubeconfig ? `KUBECFG_${variable}` : '',
      configPath: plan?.hasKubeconfig ? kubeconfig : '',
    }
    return [name, described]
  })
  return { ...state, certificatesBundle: Object.fromEntries(certificates) as object }
}

interface WrittenState {
  readonly rkeConfig?: ClusterFile
  readonly certificatesBundle?: Readonly<Record<string, Partial<BundleEntry>>>
  readonly encryptionConfig?: string
}

function inward(value: Readonly<Record<string, unknown>>, key: string): ClusterState | undefined {
  const state = value[key] as WrittenState | undefined
  if (!state?.rkeConfig) return undefined
  return {
    rkeConfig: state.rkeConfig,
    certificatesBundle: bundleOf(state),
    encryptionConfig: state.encryptionConfig ?? '',
  }
}

function adopt(value: Readonly<Record<string, unknown>>): FullState {
  const states = [value['currentState'], value['desiredState']] as (WrittenState | undefined)[]
  const found = states.map((state) => (state ? bundleOf(state) : {})).find((bundle) => Object.keys(bundle).length > 0)
  if (!found) throw new StateError('unreadable', 'The file is not the state of a cluster; restore it from a copy')
  return { adopted: found }
}

function bundleOf(state: WrittenState): Bundle {
  const entries = Object.entries(state.certificatesBundle ?? {}).map(([name, entry]): [string, BundleEntry] => {
    const { certificatePEM = '', keyPEM = '', custom } = entry
    return [name, { certificatePEM, keyPEM, ...(custom ? { custom } : {}) }]
  })
  return Object.fromEntries(entries)
}

/** The file contains all parameters, so that later versions may choose others. */
interface EncryptedState {
  readonly kdf: 'scrypt'
  readonly cost: number
  readonly blockSize: number
  readonly parallelization: number
  readonly salt: string
  readonly cipher: 'aes-256-gcm'
  readonly iv: string
  readonly tag: string
  readonly data: string
}

/** 64 MiB and about 100 ms for each guess. */
const COST = 2 ** 16
const BLOCK_SIZE = 8

function sealText(text: string, { passphrase, random }: { passphrase: string; random: Random }): string {
  const [salt, iv] = [random.bytes(16), random.bytes(12)]
  const numbers = { cost: COST, blockSize: BLOCK_SIZE, parallelization: 1 }
  const cipher = createCipheriv('aes-256-gcm', deriveKey(passphrase, salt, numbers), iv)
  const data = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  const sealed: EncryptedState = {
    kdf: 'scrypt',
    ...numbers,
    salt: salt.toString('base64'),
    cipher: 'aes-256-gcm',
    iv: iv.toString('base64'),
    tag: cipher.getAuthTag().toString('base64'),
    data: data.toString('base64'),
  }
  return `${JSON.stringify({ hyperkube: FORMAT, sealed }, undefined, 2)}\n`
}

/** The upper limit of parameters, so that a file cannot exhaust memory. */
const MAX_COST = 2 ** 20

function deriveKey(
  passphrase: string,
  salt: Buffer,
  { cost, blockSize, parallelization }: { cost: number; blockSize: number; parallelization: number },
): Buffer {
  if (cost > MAX_COST || blockSize > 32 || parallelization > 16) {
    throw new StateError('unreadable', 'The encryption parameters of the state exceed the limits')
  }
  return scryptSync(passphrase, salt, 32, { cost, blockSize, parallelization, maxmem: 256 * cost * blockSize })
}

function openText(sealed: EncryptedState, passphrase: string): string {
  if (sealed.kdf !== 'scrypt' || sealed.cipher !== 'aes-256-gcm') {
    throw new StateError('unreadable', 'The state has an unknown encryption format; use the version that wrote it')
  }
  const key = deriveKey(passphrase, Buffer.from(sealed.salt, 'base64'), sealed)
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(sealed.iv, 'base64'))
    decipher.setAuthTag(Buffer.from(sealed.tag, 'base64'))
    const data = Buffer.concat([decipher.update(Buffer.from(sealed.data, 'base64')), decipher.final()])
    return data.toString('utf8')
  } catch (cause) {
    throw new StateError('passphrase', 'The passphrase is wrong, or the state was changed', { cause })
  }
}

export const STATE_SECRET = { name: 'full-cluster-state', namespace: 'kube-system' } as const

/** A Secret is limited to 1 MiB; larger states are compressed under another key. */
const MAX_PLAIN_BYTES = 700_000

/** The data of the Secret for the text of the state file. */
export function stateSecret(text: string): {
  readonly apiVersion: 'v1'
  readonly kind: 'Secret'
  readonly metadata: typeof STATE_SECRET
  readonly type: 'Opaque'
  readonly data: Readonly<Record<string, string>>
} {
  const bytes = Buffer.from(text)
  const isSmall = bytes.length <= MAX_PLAIN_BYTES
  const key = isSmall ? STATE_SECRET.name : `${STATE_SECRET.name}.gz`
  const value = (isSmall ? bytes : gzipSync(bytes)).toString('base64')
  return { apiVersion: 'v1', kind: 'Secret', metadata: STATE_SECRET, type: 'Opaque', data: { [key]: value } }
}

/** The text for `util get-state-file`; undefined for another Secret. */
export function readStateSecret(data: Readonly<Record<string, string>> | undefined): string | undefined {
  const plain = data?.[STATE_SECRET.name]
  if (plain !== undefined) return Buffer.from(plain, 'base64').toString('utf8')
  const packed = data?.[`${STATE_SECRET.name}.gz`]
  return packed === undefined ? undefined : gunzipSync(Buffer.from(packed, 'base64')).toString('utf8')
}
