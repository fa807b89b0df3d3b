/**
 * The interface through which the API server routes requests to aggregated servers and merges their discovery and
 * OpenAPI. src/aggregation implements it.
 */
import type { APIVersionDiscovery } from '#apis/apidiscovery/v2.ts'
import type { Answer, Call } from '#component/requests/call.ts'
import type { GroupVersion } from '#meta/kind.ts'

export interface Aggregated {
  /** Health checks, under upstream's names of the parts that aggregation adds. */
  readonly hooks: readonly string[]
  /** Proxies the request to the aggregated server; undefined if this server answers itself. */
  readonly answer: (call: Call) => Promise<Answer> | undefined
  /** The groups of all APIServices, local and remote, in the order of discovery. Core is one of them. */
  announced(): readonly AnnouncedGroup[]
  /** Discovery of aggregated group versions. Returns the same objects until something changes. */
  versions(): readonly AggregatedVersion[]
  /**
   * OpenAPI v2 of aggregated servers, each restricted to its group version. Returns the same objects until something
   * changes.
   */
  swaggers(): readonly Swagger[]
  /** OpenAPI v3 of aggregated servers: the address of each document by its name, `apis/example.com/v1`. */
  openApiIndex(): ReadonlyMap<string, string>
  /** Fetches the document of that name; undefined if no aggregated server has it. */
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
  /** The form of aggregated discovery. */
  readonly discovery: APIVersionDiscovery
}

/** A document of another server: nested objects and lists. */
export type Swagger = Readonly<Record<string, unknown>>
