/**
 * Parses RKE's cluster.yml strictly and reports all errors at once, each with its line. Unlike RKE it reports unknown
 * keys and options of other plugins.
 */
import { isJsonObject } from '#lib/json/value.ts'
import { YamlError } from '#lib/yaml/error.ts'
import { YamlPlaces } from '#lib/yaml/places.ts'
import { parseYaml, splitYaml } from '#lib/yaml/yaml.ts'

import type { ClusterFile } from '../cluster.ts'
import { fillDefaults, type ReadCluster } from './cluster-defaults.ts'
import { RULES } from './cluster-rules.ts'
import { CLUSTER } from './cluster-schema.ts'
import { type Fault, Reading } from './field-reader.ts'

export type { ClusterFile } from '../cluster.ts'
export type { Fault } from './field-reader.ts'

export interface ClusterReading {
  /** Present if there are no faults. */
  readonly cluster?: ClusterFile
  /** In file order. */
  readonly faults: readonly Fault[]
  /** Values that are accepted but have a different effect than with RKE and Docker, in file order. */
  readonly notices: readonly Fault[]
}

/** The machine that forms the whole cluster, instead of those in the file. */
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
    if (splitYaml(text).length > 1) reading.fault('', 'The file contains more than one document; a cluster is one')
    const read = reading.readFile(value) as ReadCluster | undefined
    const cluster = read && fillDefaults(read)
    if (cluster) checkRules(cluster, reading)
    const faults = inOrder(reading.faults)
    return { ...(cluster && faults.length === 0 ? { cluster } : {}), faults, notices: inOrder(reading.notices) }
  } catch (error) {
    if (!(error instanceof YamlError)) throw error
    const { line, column } = error.at ?? { line: 1, column: 1 }
    const message = error.message.replace(/^yaml: (line \d+: )?/, '')
    return { faults: [{ line, column, path: '', text: `The file is not valid YAML: ${message}` }], notices: [] }
  }
}

/** A value that is no object stays unchanged, and the reader reports it. */
function withMachine(given: unknown, { name, address, user }: LoneMachine): unknown {
  if (given !== null && !isJsonObject(given)) return given
  const node = { address, user, hostname_override: name, role: ['controlplane', 'etcd', 'worker'] }
  return { ...given, nodes: [node] }
}

function checkRules(cluster: ClusterFile, reading: Reading): void {
  // Selected before any rule runs, so that the faults of one rule do not suppress the next.
  const applicable = RULES.filter(({ looksAt }) => reading.isSound(looksAt))
  for (const { check } of applicable) check(cluster, reading)
}

function inOrder(faults: readonly Fault[]): readonly Fault[] {
  return faults.toSorted((one, other) => one.line - other.line || one.column - other.column)
}

/** In the format of compilers, so that editors find the position: `cluster.yml:3:5: nodes[0].adress: Unknown key …`. */
export function formatFault(file: string, { line, column, path, text }: Fault): string {
  return `${file}:${line}:${column}: ${path === '' ? '' : `${path}: `}${text}`
}
