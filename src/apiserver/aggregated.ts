/** What servers behind this one add to it: who answers, what is served and how it is described. src/aggregation fills it. */
import type { APIVersionDiscovery } from '#apis/apidiscovery/v2.ts'
import type { GroupVersion } from '#meta/kind.ts'

import type { Answer, Call } from './call.ts'

export interface Aggregated {
  /** Health checks, as upstream names those of its parts that run because of this. */
  readonly hooks: readonly string[]
  /** Passes the request on to the server it is for; undefined when that is this one. */
  readonly answer: (call: Call) => Promise<Answer> | undefined
  /** The groups that APIServices announce, whoever serves them, in the order clients are told of them. Core is one. */
  announced(): readonly AnnouncedGroup[]
  /** What other servers say of their group versions. The same objects until something changes. */
  versions(): readonly AggregatedVersion[]
  /** OpenAPI v2 of other servers, each only what belongs to its group version. The same objects until something changes. */
  swaggers(): readonly Swagger[]
  /** OpenAPI v3 of other servers: where each document is, by its name, `apis/example.com/v1`. */
  openApiIndex(): ReadonlyMap<string, string>
  /** Asks for the document of that name where it is; undefined when no other server has it. */
  openApi(call: Call, name: string): Promise<Answer> | undefined
}

export interface AnnouncedGroup {
  readonly name: string
  /** The preferred one first. */
  readonly versions: readonly GroupVersion[]
}

export interface AggregatedVersion {
  readonly group: string
  readonly groupPriority: number
  readonly versionPriority: number
  /** As aggregated discovery shows it. */
  readonly discovery: APIVersionDiscovery
}

/** A document of another server: objects and lists of any depth. */
export type Swagger = Readonly<Record<string, unknown>>
