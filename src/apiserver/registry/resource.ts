/**
 * Resource: all rules of one kind, as one literal that reads as a table. The generic store handles everything else.
 *
 * Hooks work on the storage version. They may modify the object that they receive, but must not retain it.
 */
import type { Kind } from '#apis/kinds.ts'
import type { User } from '#auth/user.ts'
import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import type { Steps } from '#lib/time-slicing.ts'
import type { ReplicasPaths } from '#meta/apply/scale-fields.ts'
import type { KubeObject } from '#meta/object.ts'
import type { DeleteOptions } from '#meta/options.ts'
import type { TableCell, TableColumn, TableRowCondition } from '#meta/table.ts'
import type { FieldError } from '#meta/validation/field-path.ts'
import { type NameRule, nameIsSubdomain } from '#meta/validation/names.ts'

import type { Definition, Dialect } from './openapi-definition.ts'
import { BUILT_IN, createShapes, type OwnShapes, type Shapes } from './shapes.ts'

/** Reads other objects at the newest state, for rules that depend on more than one object. */
export interface ObjectReader {
  get<T extends KubeObject>(kind: Kind<T>, namespace: string, name: string): Promise<T | undefined>
  list<T extends KubeObject>(kind: Kind<T>, namespace: string): Promise<readonly T[]>
}

/** Writes objects as a user, through the same path as every write. Kinds that are not served are skipped. */
export interface ObjectWriter extends ObjectReader {
  /** Returns the stored object. Throws StatusError 409 if its name is taken. */
  create<T extends KubeObject>(kind: Kind<T>, object: NewObject<T>): Promise<T | undefined>
  /** Creates the object unless it exists; an existing one stays unchanged. True if it was created. */
  ensure<T extends KubeObject>(kind: Kind<T>, object: NewObject<T>): Promise<boolean>
  /** Throws StatusError 404 if it does not exist. */
  update: UpdateObject
  /** The same for its status. */
  updateStatus: UpdateObject
  /** True if it was deleted or is being deleted; false if it does not exist. */
  delete(kind: Kind, where: ObjectName, options?: DeleteOptions): Promise<boolean>
}

export type UpdateObject = <T extends KubeObject>(
  kind: Kind<T>,
  where: ObjectName,
  change: ObjectChange<T>,
  terms?: ChangeTerms,
) => Promise<void>

export interface ObjectName {
  readonly namespace?: string
  readonly name: string
}

/** Computes the new object. It receives a copy that it may modify and return; it runs again after a conflict. */
export type ObjectChange<T extends KubeObject> = (object: T) => T | Promise<T>

export interface ChangeTerms {
  /** Requires the given version; otherwise 409. */
  readonly resourceVersion?: string | undefined
  /** Creates a missing object from one that has only its kind; otherwise 404. */
  readonly creates?: boolean
  /** The change does not modify its argument and shares parts of it: nothing is copied and little compared. */
  readonly shares?: boolean
}

export type NewObject<T extends KubeObject> = Omit<T, 'kind' | 'apiVersion'>

/** Inputs of rules besides the objects. */
export interface RuleContext {
  readonly clock: Clock
  readonly random: Random
  /** True if a feature gate is enabled. */
  readonly isEnabled: (gate: string) => boolean
  /** `--allow-privileged`. */
  readonly allowPrivileged: boolean
}

export interface WriteContext extends RuleContext {
  readonly user: User
  /** The request's verb: updates and patches do the same, but need different rights. */
  readonly verb: string
  readonly dryRun: boolean
  readonly objects: ObjectReader
  /** Writes consequences of a request as the server itself. */
  readonly writer: ObjectWriter
  readonly signal: AbortSignal
}

/** Rolls back or confirms a reservation of a hook, once the result of the write is known. */
export type Finish = (written: boolean) => Promise<void>

export interface Column<T extends KubeObject> {
  readonly name: string
  readonly description?: string
  readonly type?: TableColumn['type']
  readonly format?: string
  /** Only with `-o wide`. */
  readonly wide?: boolean
  /** Default: 1 for the wide ones, else 0. */
  readonly priority?: number
  /** `nowMs` for cells that show an age; such a column is computed for every response. */
  value(object: T, nowMs: number): TableCell
}

/** A field of an object as text, for selectors. Bivariant, so that resources of all kinds fit into one list. */
export type FieldText<T extends KubeObject> = { of(object: T): string }['of']

/** The rules of a subresource that writes part of the object: `status`, `resize`, `approval`, … */
export interface PartRules<T extends KubeObject> {
  /** Paths that keep their stored values. Default for `status`: everything but status. */
  readonly keeps?: readonly string[]
  /** Paths that no writer owns through this subresource, if they differ from the kept ones: upstream's reset fields. */
  readonly resets?: readonly string[]
  /** Copies into `next` whatever else this subresource may not change. */
  prepareUpdate?(next: T, old: T, context: RuleContext): void
  validateUpdate?(next: T, old: T, context: RuleContext): FieldError[]
  warnings?(next: T, old: T): string[]
}

/**
 * The particular rules of a custom resource. Each version is a separate resource with rules for its objects; all
 * versions share the stored objects.
 */
export interface CustomRules {
  /** The storage version. */
  readonly storedAs: string
  /**
   * Removes unknown fields from `object` and returns their paths in order. It also removes nulls that are not allowed,
   * unless they must be rejected.
   */
  prune(object: KubeObject, keepsNulls?: boolean): readonly string[]
  /** Converts a stored object of any version to this one: pruned, with defaults. Takes ownership of the object. */
  show(object: KubeObject): KubeObject
  /** With a conversion webhook: converts objects of other versions in one call. Throws StatusError. */
  readonly ask?: (objects: readonly KubeObject[]) => Promise<readonly KubeObject[]>
  /** The object to store. Throws StatusError. */
  store(object: KubeObject): KubeObject | Promise<KubeObject>
  /** The reason why nothing can be created while the definition is being deleted; for 403. */
  readonly closedBecause?: string
  /** The reason why every request fails; for 500. */
  readonly brokenBecause?: string
  /** The OpenAPI definitions of the objects and their lists. */
  describe(dialect: Dialect): { readonly object: Definition; readonly list: Definition }
  /** A hash that distinguishes definitions of the same kind. */
  readonly identity: string
}

/** The mapping of `scale` to the kind. */
export interface ScaleRules<T extends KubeObject> {
  replicas(object: T): number
  setReplicas(object: T, replicas: number): void
  statusReplicas(object: T): number
  /** The selector of its pods as text. */
  selector(object: T): string
  /** The paths in each version; those of the built-in workloads by default. */
  readonly replicasPaths?: ReplicasPaths
  /** The reason why the object has no Scale; reading it is then 500. */
  obstacle?(object: T): string | undefined
}

/** Another served version of the same stored objects. */
export interface OtherVersion {
  readonly kind: Kind
  applyDefaults?(object: KubeObject, context: RuleContext): void
  /** Replaces the resource's rules for requests in this version; objects are in the storage version. */
  validate?(object: KubeObject, context: RuleContext): FieldError[]
  validateUpdate?(next: KubeObject, old: KubeObject, context: RuleContext): FieldError[]
  /** Default: the resource's. */
  readonly metadataRules?: MetadataRules
  /** Its field selectors besides metadata, by their name in the storage version. Default: the resource's own. */
  readonly fieldNames?: Readonly<Record<string, string>>
}

/** A validation of metadata: of its changes, or of all of it, including a generateName by the kind's name rule. */
export type MetadataLook = 'change' | 'whole'

/** Repeated validation of metadata by the kind's own rules, after the store's; visible in the causes of an error. */
export interface MetadataRules {
  /** On an update of the object, in order; default: of its changes. */
  readonly update?: readonly MetadataLook[]
  /** On an update of its status or another part; default: of its changes. */
  readonly part?: readonly MetadataLook[]
  /** True if finalizers may be names without a domain; default: false. */
  readonly plainFinalizers?: boolean
}

export interface ResourceSpec<T extends KubeObject> {
  /** In the storage version. */
  readonly kind: Kind<T>
  /** Further versions, converted through `model/conversion`. */
  readonly otherVersions?: readonly OtherVersion[]
  /** For kinds that are not built in: the schema of each version, and the conversion. */
  readonly shapes?: OwnShapes
  /** Only for custom resources. */
  readonly custom?: CustomRules
  /** Below `/registry/`; the plural unless upstream uses another path (`minions` for nodes). */
  readonly storagePrefix?: string
  /** Objects expire after this time (events). */
  readonly ttlMs?: number
  readonly nameRule?: NameRule
  /** Replaces `nameRule` for kinds whose spec determines the name. */
  nameRuleFor?(object: T): NameRule
  /** The name for a `generateName`. Default: a suffix of five random characters. */
  readonly generateName?: (base: string, random: Random) => string

  applyDefaults?(object: T, context: RuleContext): void
  /**
   * Runs after defaulting and before validation: sets server fields and drops fields of disabled gates. Status is
   * already cleared.
   */
  prepareCreate?(object: T, context: WriteContext): void
  prepareUpdate?(next: T, old: T, context: WriteContext): void
  /** The store validates metadata. Default: everything is valid. */
  validate?(object: T, context: RuleContext): FieldError[]
  /** Replaces `validate` and `validateUpdate` where validation takes long: yields at each step. */
  validateInSteps?(next: T, old: T | undefined, context: RuleContext): Steps<FieldError[]>
  /** Replaces `validate` on update; it may call `validate` itself. Default: `validate(next)`. */
  validateUpdate?(next: T, old: T, context: RuleContext): FieldError[]
  warnings?(next: T, old: T | undefined): string[]
  /** Reserves resources such as addresses and ports, after mutating admission. Throws StatusError. */
  allocate?(next: T, old: T | undefined, context: WriteContext): Promise<Finish>
  /** Changes an object that stays while it is being deleted. */
  deletion?(object: T, options: DeleteOptions, context: WriteContext): void
  /**
   * For kinds with graceful deletion: the grace period in seconds of an object that is not being deleted yet, given the
   * requested one. Absent: objects are removed at once, or with their last finalizer.
   */
  graceSeconds?(object: T, requested: number | undefined): number
  /** A warning for clients that delete, one object or many. */
  deletionWarnings?(options: DeleteOptions): string[]
  /** True if the kind blocks the removal of an object in addition to finalizers (a namespace's contents). */
  isDeletionBlocked?(object: T): boolean
  /**
   * The first DELETE only marks the object, without a grace period or a new generation; the value tells whether it sets
   * the finalizers of the propagation policy. A later DELETE behaves as for any other kind.
   */
  readonly marksFirst?: 'with-policy' | 'without-policy' | undefined
  /** Called after the object was removed. */
  released?(object: T, context: WriteContext): Promise<void>

  /** Additional metadata validation of upstream's rules for this kind. */
  readonly metadataRules?: MetadataRules

  /** Increments `metadata.generation`. `spec`: if anything but metadata and status changed. Default: never. */
  readonly generation?: 'spec' | { grows(next: T, old: T): boolean }['grows']
  readonly status?: PartRules<T>
  /** The part rules for writes of the object itself; default: status, if it is a subresource. */
  readonly resets?: readonly string[]
  /** True if the creator may set status (nodes). Default: cleared on create, kept from the stored object on update. */
  readonly statusOnCreate?: 'kept'
  readonly scale?: ScaleRules<T>
  /** Further writable parts, by subresource name. */
  readonly parts?: Readonly<Record<string, PartRules<T>>>

  /** Field selectors besides metadata.name and metadata.namespace, each with a reader of its text. */
  readonly fieldSelectors?: Readonly<Record<string, FieldText<T>>>
  /** Aliases for old clients, such as `spec.host` for `spec.nodeName`. */
  readonly fieldAliases?: Readonly<Record<string, string>>
  /** The error for an unknown field selector. Default: upstream's common text. */
  readonly unknownField?: (label: string) => string
  /** The field selectors by which watches are indexed. */
  readonly indexedFields?: readonly string[]

  /** Default: Name and Age. */
  readonly columns?: readonly Column<T>[]
  rowConditions?(object: T): TableRowCondition[]
  /** The order of rows in a Table; that of lists by default. */
  rowOrder?(one: T, other: T): number

  /** A Warning on every response about this kind: its deprecation and replacement. */
  readonly deprecation?: string
  /** DELETE returns the object instead of a Status. */
  readonly deleteAnswersObject?: boolean
  /** PUT to a name that does not exist creates. */
  readonly putCreates?: boolean
  /** Propagation policies of a delete are ignored. */
  readonly ignoresPropagation?: boolean
  /** PUT without resourceVersion is refused. */
  readonly putNeedsVersion?: boolean
}

export interface Resource<T extends KubeObject = KubeObject> extends Omit<ResourceSpec<T>, 'shapes'> {
  readonly shapes: Shapes
  readonly storagePrefix: string
  readonly nameRule: NameRule
}

/** A resource with its defaults filled in. */
export function defineResource<T extends KubeObject>(spec: ResourceSpec<T>): Resource<T> {
  return {
    ...spec,
    shapes: spec.shapes === undefined ? BUILT_IN : createShapes(spec.kind, spec.shapes),
    storagePrefix: spec.storagePrefix ?? spec.kind.plural,
    nameRule: spec.nameRule ?? nameIsSubdomain,
  }
}

/** A kind that is answered and never stored: reviews, bindings. */
export interface Review<T extends KubeObject = KubeObject> {
  readonly kind: Kind<T>
  applyDefaults?(object: T, context: RuleContext): void
  validate?(object: T, context: RuleContext): FieldError[]
  answer(object: T, context: WriteContext & { readonly namespace: string }): Promise<KubeObject>
}

export function defineReview<T extends KubeObject>(review: Review<T>): Review<T> {
  return review
}
