/**
 * Evaluates the benchmark's CEL expressions with upstream's CEL environment, in a Go program that is built once and
 * cached.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

const FOLDER = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'hyperkube', 'cel-reference')

const MODULE = `module reference

go 1.26

require (
	github.com/google/cel-go v0.26.0
	k8s.io/apiextensions-apiserver v0.36.4
	k8s.io/apiserver v0.36.4
)
`

/** Reads rules, the object and its schema; prints nanoseconds for each rule: the median of several rounds. */
const PROGRAM = `package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"time"

	"github.com/google/cel-go/cel"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

type input struct {
	Typed, Dyn []string
	Object     map[string]any
	Schema     apiextensionsv1.JSONSchemaProps
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func whole(v any) any {
	switch t := v.(type) {
	case map[string]any:
		for k := range t {
			t[k] = whole(t[k])
		}
	case []any:
		for i := range t {
			t[i] = whole(t[i])
		}
	case float64:
		return int64(t)
	}
	return v
}

func measure(env *cel.Env, rule, name string, read func() any) float64 {
	ast, issues := env.Compile(rule)
	check(issues.Err())
	prog, err := env.Program(ast, cel.CostLimit(1000000), cel.CostTracking(&library.CostEstimator{}), cel.InterruptCheckFrequency(100))
	check(err)
	run := func(times int) time.Duration {
		start := time.Now()
		for i := 0; i < times; i++ {
			out, _, err := prog.Eval(map[string]any{name: read()})
			check(err)
			if out.Value() != true {
				panic(rule)
			}
		}
		return time.Since(start)
	}
	run(20000)
	var rounds []float64
	for i := 0; i < 9; i++ {
		rounds = append(rounds, float64(run(20000).Nanoseconds())/20000)
	}
	sort.Float64s(rounds)
	return rounds[4]
}

func main() {
	var in input
	check(json.NewDecoder(os.Stdin).Decode(&in))
	object := whole(in.Object).(map[string]any)
	var internal apiextensions.JSONSchemaProps
	check(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&in.Schema, &internal, nil))
	structural, err := schema.NewStructural(&internal)
	check(err)
	decl := model.SchemaDeclType(structural, false).MaybeAssignTypeName("selfType")
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	extend := func(option cel.EnvOption, types ...*apiservercel.DeclType) *cel.Env {
		set, err := base.Extend(environment.VersionedOptions{
			IntroducedVersion: environment.DefaultCompatibilityVersion(),
			EnvOptions:        []cel.EnvOption{option},
			DeclTypes:         types,
		})
		check(err)
		env, err := set.Env(environment.StoredExpressions)
		check(err)
		return env
	}
	out := map[string]float64{}
	typed := extend(cel.Variable("self", decl.CelType()), decl)
	for _, rule := range in.Typed {
		out[rule] = measure(typed, rule, "self", func() any { return schemacel.UnstructuredToVal(object, structural) })
	}
	dyn := extend(cel.Variable("object", cel.DynType))
	for _, rule := range in.Dyn {
		out[rule] = measure(dyn, rule, "object", func() any { return object })
	}
	text, err := json.Marshal(out)
	check(err)
	fmt.Println(string(text))
}
`

export interface ReferenceInput {
  readonly typed: readonly string[]
  readonly dyn: readonly string[]
  readonly object: object
  readonly schema: object
}

/** Nanoseconds for each rule. */
export function measureReference(input: ReferenceInput): Readonly<Record<string, number>> {
  const program = join(FOLDER, 'reference')
  const source = join(FOLDER, 'main.go')
  if (!existsSync(program) || readFileSync(source, 'utf8') !== PROGRAM) {
    mkdirSync(FOLDER, { recursive: true })
    writeFileSync(join(FOLDER, 'go.mod'), MODULE)
    writeFileSync(source, PROGRAM)
    const env = { ...process.env, GOFLAGS: '-mod=mod' }
    const built = spawnSync('go', ['build', '-o', program, '.'], { cwd: FOLDER, env, stdio: ['ignore', 2, 2] })
    if (built.status !== 0) throw new Error('The reference was not built; Go 1.26 or later is needed')
  }
  const done = spawnSync(program, { input: JSON.stringify(input), encoding: 'utf8', stdio: ['pipe', 'pipe', 2] })
  if (done.status !== 0) throw new Error('The reference failed; see its messages above')
  return JSON.parse(done.stdout) as Record<string, number>
}
