/**
 * cluster.yml: RKE's file, read strictly. Every fault is found in one reading, each with its line, so that a person
 * repairs the file once. What RKE passed over in silence (keys it did not know, options of other plugins) is said here.
 */
import { isJsonObject } from '#lib/json-value.ts'
import { YamlError } from '#lib/yaml-error.ts'
import { YamlPlaces } from '#lib/yaml-places.ts'
import { parseYaml, splitYaml } from '#lib/yaml.ts'

import { fillDefaults, type ReadCluster } from './cluster-defaults.ts'
import { RULES } from './cluster-rules.ts'
import { CLUSTER } from './cluster-schema.ts'
import type { ClusterFile } from './cluster.ts'
import { type Fault, Reading } from './field-reader.ts'

export type { ClusterFile } from './cluster.ts'
export type { Fault } from './field-reader.ts'

export interface ClusterReading {
  /** There when there is no fault. */
  readonly cluster?: ClusterFile
  /** In the order of the file. */
  readonly faults: readonly Fault[]
  /** What is taken but does not do what it did with RKE and Docker, in the order of the file. */
  readonly notices: readonly Fault[]
}

/** The machine that is to be all of a cluster, whatever machines the file names. */
export interface LoneMachine {
  readonly name: string
  readonly address: string
  readonly user: string
}

/** Never throws. */
export function readClusterFile(text: string, lone?: LoneMachine): ClusterReading {
  const places = new YamlPlaces()
  try {
    const given = parseYaml(text, { places })
    const value = lone === undefined ? given : withMachine(given, lone)
    const reading = new Reading(CLUSTER, places)
    if (splitYaml(text).length > 1) reading.fault('', 'The file holds more than one document; a cluster is one')
    const read = reading.readFile(value) as ReadCluster | undefined
    const cluster = read && fillDefaults(read)
    if (cluster) judge(cluster, reading)
    const faults = inOrder(reading.faults)
    return { ...(cluster && faults.length === 0 ? { cluster } : {}), faults, notices: inOrder(reading.notices) }
  } catch (error) {
    if (!(error instanceof YamlError)) throw error
    const { line, column } = error.at ?? { line: 1, column: 1 }
    const message = error.message.replace(/^yaml: (line \d+: )?/, '')
    return { faults: [{ line, column, path: '', text: `This is no YAML: ${message}` }], notices: [] }
  }
}

/** What is no object stays as it is, and is told of. */
function withMachine(given: unknown, { name, address, user }: LoneMachine): unknown {
  if (given !== null && !isJsonObject(given)) return given
  const node = { address, user, hostname_override: name, role: ['controlplane', 'etcd', 'worker'] }
  return { ...given, nodes: [node] }
}

function judge(cluster: ClusterFile, reading: Reading): void {
  // Chosen before any is asked: a rule's own faults must not silence the next.
  const asked = RULES.filter(({ looksAt }) => reading.isSound(looksAt))
  for (const { check } of asked) check(cluster, reading)
}

function inOrder(faults: readonly Fault[]): readonly Fault[] {
  return faults.toSorted((one, other) => one.line - other.line || one.column - other.column)
}

/** As compilers say it, so that editors find the place: `cluster.yml:3:5: nodes[0].adress: Unknown key …`. */
export function formatFault(file: string, { line, column, path, text }: Fault): string {
  return `${file}:${line}:${column}: ${path === '' ? '' : `${path}: `}${text}`
}
