/**
 * Resource: everything that is particular to one kind, as one literal that reads as a table. What every kind needs
 * (metadata rules, status kept apart, generation, managed fields, watch, patch, tables) belongs to the generic store.
 *
 * Hooks work on the version in which the kind is stored. They may change the object they are handed, which is a fresh
 * copy in canonical form or near it; the store canonicalises what comes out. They never keep it.
 */
import type { Kind } from '#apis/kinds.ts'
import type { Clock } from '#lib/clock.ts'
import type { Random } from '#lib/random.ts'
import type { Steps } from '#lib/slices.ts'
import type { ReplicasPaths } from '#meta/apply/scale-fields.ts'
import type { KubeObject } from '#meta/object.ts'
import type { DeleteOptions } from '#meta/options.ts'
import type { TableCell, TableColumn, TableRowCondition } from '#meta/table.ts'
import type { FieldError } from '#meta/validation/field-error.ts'
import { type NameRule, nameIsSubdomain } from '#meta/validation/names.ts'

import type { Definition, Dialect } from '../openapi/definitions.ts'
import { BUILT_IN, createShapes, type OwnShapes, type Shapes } from './shapes.ts'

/** Who is asking. */
export interface User {
  readonly name: string
  readonly uid: string
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
  /** What the audit log is to be told of the credentials, by the names of its annotations. */
  readonly notes?: Readonly<Record<string, string>>
  /** What the client is to be told of them. */
  readonly warnings?: readonly string[]
}

/** Reads other objects, at the newest state; for rules that depend on more than the object at hand. */
export interface ObjectReader {
  get<T extends KubeObject>(kind: Kind<T>, namespace: string, name: string): Promise<T | undefined>
  list<T extends KubeObject>(kind: Kind<T>, namespace: string): Promise<readonly T[]>
}

/** Writes objects in the name of a user, on the path that every write takes. What is not served is not written. */
export interface ObjectWriter extends ObjectReader {
  /** The object as it is stored. Throws StatusError 409 when its name is taken. */
  create<T extends KubeObject>(kind: Kind<T>, object: NewObject<T>): Promise<T | undefined>
  /** Creates the object unless one of its name is there, which stays as it is. True when it was created. */
  ensure<T extends KubeObject>(kind: Kind<T>, object: NewObject<T>): Promise<boolean>
  /** Throws StatusError 404 when it is not there. */
  update: UpdateObject
  /** The same of its status. */
  updateStatus: UpdateObject
  /** True when it went, or is on its way; false when it is not there. */
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

/** What an object becomes. Handed a copy, which it may change and return; asked again when somebody else was faster. */
export type ObjectChange<T extends KubeObject> = (object: T) => T | Promise<T>

export interface ChangeTerms {
  /** Only what was seen is changed; else 409. */
  readonly resourceVersion?: string | undefined
  /** What is not there is made, from an object of nothing but its kind; else 404. */
  readonly creates?: boolean
  /** The change leaves what it is handed as it is, and shares parts of it: nothing is copied, and little compared. */
  readonly shares?: boolean
}

export type NewObject<T extends KubeObject> = Omit<T, 'kind' | 'apiVersion'>

/** What rules may depend on besides the objects. */
export interface RuleContext {
  readonly clock: Clock
  readonly random: Random
  /** Whether a feature gate is on. */
  readonly isEnabled: (gate: string) => boolean
  /** `--allow-privileged`. */
  readonly allowPrivileged: boolean
}

export interface WriteContext extends RuleContext {
  readonly user: User
  /** That of the request: an update and a patch do the same, but not everybody may do both. */
  readonly verb: string
  readonly dryRun: boolean
  readonly objects: ObjectReader
  /** For what follows from the write, in the server's own name. */
  readonly writer: ObjectWriter
  readonly signal: AbortSignal
}

/** Undoes what a hook reserved, or makes it final, once the outcome of the write is known. */
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
  /** `nowMs` for cells that tell an age; a column that uses it is computed at answer time. */
  value(object: T, nowMs: number): TableCell
}

/** A field of an object as text, for selectors. Bivariant, so that resources of all kinds fit into one list. */
export type FieldText<T extends KubeObject> = { of(object: T): string }['of']

/** The rules of a subresource through which clients write part of the object: `status`, `resize`, `approval`, … */
export interface PartRules<T extends KubeObject> {
  /** Paths that stay as they are stored, whatever is sent. Default for `status`: everything but status. */
  readonly keeps?: readonly string[]
  /** Paths that nobody comes to own by writing here, where those are others than what is kept: upstream's reset fields. */
  readonly resets?: readonly string[]
  /** Takes over into `next` whatever else this subresource may not change. */
  prepareUpdate?(next: T, old: T, context: RuleContext): void
  validateUpdate?(next: T, old: T, context: RuleContext): FieldError[]
  warnings?(next: T, old: T): string[]
}

/**
 * What sets a custom resource apart from the kinds that the program knows. Each version is a resource of its own, with
 * rules for objects in that version; they share what is stored.
 */
export interface CustomRules {
  /** The apiVersion in which objects are written. */
  readonly storedAs: string
  /**
   * Takes out of `object` what the schema of this version does not know; returns the paths of that, in order. Nulls that
   * may not be there go too, unless they are to be refused.
   */
  prune(object: KubeObject, keepsNulls?: boolean): readonly string[]
  /** What is stored, in whichever version, as this one shows it: pruned, with defaults. The object is given away. */
  show(object: KubeObject): KubeObject
  /** Where others convert: the same for objects of other versions, all at once. Throws StatusError. */
  readonly ask?: (objects: readonly KubeObject[]) => Promise<readonly KubeObject[]>
  /** The object as it is to be stored. Throws StatusError. */
  store(object: KubeObject): KubeObject | Promise<KubeObject>
  /** Why nothing new may be made of it, while its definition goes; for 403. */
  readonly closedBecause?: string
  /** Why nothing at all can be done; for 500. */
  readonly brokenBecause?: string
  /** How OpenAPI documents show the objects and their lists. */
  describe(dialect: Dialect): { readonly object: Definition; readonly list: Definition }
  /** Tells definitions of the same kind apart by what they say. */
  readonly identity: string
}

/** How `scale` reads and writes the kind. */
export interface ScaleRules<T extends KubeObject> {
  replicas(object: T): number
  setReplicas(object: T, replicas: number): void
  statusReplicas(object: T): number
  /** The selector of its pods as text. */
  selector(object: T): string
  /** Where they are in each version; default: where the built-in workloads have them. */
  readonly replicasPaths?: ReplicasPaths
  /** Why the object cannot be shown as a Scale; reading it is 500 then. */
  obstacle?(object: T): string | undefined
}

/** Another version under which the same stored objects are served. */
export interface OtherVersion {
  readonly kind: Kind
  applyDefaults?(object: KubeObject, context: RuleContext): void
  /** In place of the resource's own rules for requests in this version; objects are in the stored one. */
  validate?(object: KubeObject, context: RuleContext): FieldError[]
  validateUpdate?(next: KubeObject, old: KubeObject, context: RuleContext): FieldError[]
  /** Default: the resource's. */
  readonly metadataRules?: MetadataRules
  /** Its field selectors besides metadata, each with its name in the stored version. Default: the resource's own. */
  readonly fieldNames?: Readonly<Record<string, string>>
}

/** Looked at: what changed in the metadata, or the whole of it, a generateName by the kind's rule for names included. */
export type MetadataLook = 'change' | 'whole'

/** The rules of each kind look at metadata again, after the store has for all kinds; it shows in the causes of a refusal. */
export interface MetadataRules {
  /** On an update of the object, in order; default: at the change. */
  readonly update?: readonly MetadataLook[]
  /** On an update of its status or another part; default: at the change. */
  readonly part?: readonly MetadataLook[]
  /** Whether finalizers may be names without a domain; default: no. */
  readonly plainFinalizers?: boolean
}

export interface ResourceSpec<T extends KubeObject> {
  /** In the version objects are stored in. */
  readonly kind: Kind<T>
  /** Further versions, converted through `model/conversion`. */
  readonly otherVersions?: readonly OtherVersion[]
  /** For kinds that are not built in: the schema of each version, and how objects get from one to another. */
  readonly shapes?: OwnShapes
  /** Of custom resources. */
  readonly custom?: CustomRules
  /** Below `/registry/`; the plural unless upstream stores it elsewhere (`minions` for nodes). */
  readonly storagePrefix?: string
  /** Objects go by themselves after this long (events). */
  readonly ttlMs?: number
  readonly nameRule?: NameRule
  /** In place of `nameRule`, for kinds whose spec decides the name. */
  nameRuleFor?(object: T): NameRule
  /** The name that `generateName` leads to. Default: with five characters drawn at random. */
  readonly generateName?: (base: string, random: Random) => string

  applyDefaults?(object: T, context: RuleContext): void
  /** After defaulting, before validation: fields the server sets, fields of gates that are off. Status is cleared already. */
  prepareCreate?(object: T, context: WriteContext): void
  prepareUpdate?(next: T, old: T, context: WriteContext): void
  /** Metadata is checked by the store. Default: everything is valid. */
  validate?(object: T, context: RuleContext): FieldError[]
  /** In place of `validate` and `validateUpdate`, where that takes long: others have their turn at each step. */
  judge?(next: T, old: T | undefined, context: RuleContext): Steps<FieldError[]>
  /** In place of `validate` on update, where both apply the hook calls it itself. Default: `validate(next)`. */
  validateUpdate?(next: T, old: T, context: RuleContext): FieldError[]
  warnings?(next: T, old: T | undefined): string[]
  /** Reserves what the object needs from elsewhere (addresses, ports), after mutating admission. Throws StatusError. */
  allocate?(next: T, old: T | undefined, context: WriteContext): Promise<Finish>
  /** What a deletion changes of the object that stays meanwhile. */
  deletion?(object: T, options: DeleteOptions, context: WriteContext): void
  /**
   * For kinds that somebody (the kubelet) has to stop: the seconds until then, of an object that nobody has deleted yet.
   * `asked` is the client's wish. Absent: objects go at once, or when their finalizers do.
   */
  graceSeconds?(object: T, asked: number | undefined): number
  /** What whoever deletes, one or many, is warned of before. */
  deletionWarnings?(options: DeleteOptions): string[]
  /** Something of its own keeps an object that is being deleted, besides finalizers (a namespace's contents). */
  isHeld?(object: T): boolean
  /**
   * The first DELETE marks the object and removes nothing, without a grace period or a new generation; whether it sets
   * the finalizers of the propagation policy. A later DELETE is as of any other kind.
   */
  readonly marksFirst?: 'with-policy' | 'without-policy' | undefined
  /** Called when the object has really gone. */
  released?(object: T, context: WriteContext): Promise<void>

  /** What upstream's rules of this kind do about metadata, besides what the store does for all. */
  readonly metadataRules?: MetadataRules

  /** Whether `metadata.generation` grows. `spec`: when anything but metadata and status changed. Default: not kept. */
  readonly generation?: 'spec' | { grows(next: T, old: T): boolean }['grows']
  readonly status?: PartRules<T>
  /** As of a part, for writes of the object itself; default: status, where it is a part of its own. */
  readonly resets?: readonly string[]
  /** A kind whose creator may set status (nodes). Default: cleared on create, kept from the stored object on update. */
  readonly statusOnCreate?: 'kept'
  readonly scale?: ScaleRules<T>
  /** Further writable parts, by subresource name. */
  readonly parts?: Readonly<Record<string, PartRules<T>>>

  /** Besides metadata.name and metadata.namespace; what `status.phase` is of this object, as text. */
  readonly fieldSelectors?: Readonly<Record<string, FieldText<T>>>
  /** Labels an old client may use instead, as `spec.host` for `spec.nodeName`. */
  readonly fieldAliases?: Readonly<Record<string, string>>
  /** How a field selector that is not known is refused. Default: upstream's common text. */
  readonly unknownField?: (label: string) => string
  /** Which of the field selectors watches are indexed by. */
  readonly indexedFields?: readonly string[]

  /** Default: Name and Age. */
  readonly columns?: readonly Column<T>[]
  rowConditions?(object: T): TableRowCondition[]
  /** In which order a Table shows them; by default as lists do. */
  rowOrder?(one: T, other: T): number

  /** A Warning on every answer about this kind: that it is deprecated, and what to use instead. */
  readonly deprecation?: string
  /** DELETE answers with the object instead of a Status. */
  readonly deleteAnswersObject?: boolean
  /** PUT to a name that does not exist creates. */
  readonly putCreates?: boolean
  /** Nobody waits for these to go: propagation policies of a delete mean nothing. */
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

/** A kind that answers and is never stored: reviews, bindings. */
export interface Review<T extends KubeObject = KubeObject> {
  readonly kind: Kind<T>
  applyDefaults?(object: T, context: RuleContext): void
  validate?(object: T, context: RuleContext): FieldError[]
  answer(object: T, context: WriteContext & { readonly namespace: string }): Promise<KubeObject>
}

export function defineReview<T extends KubeObject>(review: Review<T>): Review<T> {
  return review
}
