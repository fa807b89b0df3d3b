/** Parses the settings file of a worker node strictly, and reports all errors at once. */
import { ProgramError } from '#lib/program.ts'

import { type NodeSettings, podNetworkKind, tidySettings } from './settings.ts'

type Check = (value: unknown) => boolean

const isText: Check = (value) => typeof value === 'string' && value !== ''
const isTexts: Check = (value) => Array.isArray(value) && value.every((item) => typeof item === 'string')
const isNumber: Check = (value) => typeof value === 'number' && Number.isInteger(value) && value > 0

interface Key {
  readonly check: Check
  readonly wanted: string
  readonly isOptional?: boolean
}

const text: Key = { check: isText, wanted: 'a text' }
const texts: Key = { check: isTexts, wanted: 'a list of texts', isOptional: true }
const number: Key = { check: isNumber, wanted: 'a whole number above 0', isOptional: true }
const optional: Key = { ...text, isOptional: true }

const KEYS: Readonly<Record<keyof NodeSettings, Key>> = {
  clusterCidr: text,
  clusterDomain: text,
  serviceCidr: text,
  dnsServiceIp: text,
  cniComponent: text,
  cniMode: text,
  kubeletOptions: texts,
  kubeProxyOptions: texts,
  networkPolicyOptions: texts,
  nodeIp: text,
  nodeName: text,
  cloudProvider: optional,
  cloudConfig: optional,
  registryConfig: optional,
  vni: number,
  port: number,
}

/** Throws ProgramError with all faults. */
export function readSettings(document: unknown): NodeSettings {
  if (typeof document !== 'object' || document === null || Array.isArray(document))
    throw new ProgramError('the file does not contain settings of a node')
  const given = document as Readonly<Record<string, unknown>>
  const unknown = Object.keys(given).filter((key) => !Object.hasOwn(KEYS, key))
  const faults = [
    ...unknown.map((key) => `unknown key "${key}"`),
    ...Object.entries(KEYS).flatMap(([key, { check, wanted, isOptional }]) => {
      if (given[key] === undefined) return isOptional === true ? [] : [`"${key}" is missing`]
      return check(given[key]) ? [] : [`"${key}" must be ${wanted}`]
    }),
  ]
  if (faults.length > 0) throw new ProgramError(faults.join('; '))
  const settings = tidySettings({ kubeletOptions: [], kubeProxyOptions: [], ...given } as unknown as NodeSettings)
  try {
    podNetworkKind(settings)
  } catch (error) {
    throw new ProgramError((error as Error).message)
  }
  return settings
}
