// What cel-go makes of the cases of cel-spec in the environment that Kubernetes gives to expressions: one line of JSON for
// each, in the order of the files named.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	conformance "cel.dev/expr/conformance/test"
	"github.com/google/cel-go/cel"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"

	_ "cel.dev/expr/conformance/proto2"
	_ "cel.dev/expr/conformance/proto3"
)

type outcome struct {
	ID           string          `json:"id"`
	CompileError string          `json:"compileError,omitempty"`
	ProgramError string          `json:"programError,omitempty"`
	EvalError    string          `json:"evalError,omitempty"`
	Type         string          `json:"type,omitempty"`
	Value        json.RawMessage `json:"value,omitempty"`
	Cost         uint64          `json:"cost"`
	Varies       bool            `json:"varies,omitempty"`
}

func main() {
	base := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	env, err := base.Env(environment.NewExpressions)
	must(err)
	for _, path := range os.Args[1:] {
		text, err := os.ReadFile(path)
		must(err)
		file := &conformance.SimpleTestFile{}
		must(prototext.Unmarshal(text, file))
		for _, section := range file.Section {
			for _, test := range section.Test {
				found := judge(env, test)
				found.ID = file.Name + "/" + section.Name + "/" + test.Name
				line, err := json.Marshal(found)
				must(err)
				fmt.Println(string(line))
			}
		}
	}
}

func judge(env *cel.Env, test *conformance.SimpleTest) (found outcome) {
	options := []cel.EnvOption{}
	for _, one := range test.TypeEnv {
		option, err := cel.ProtoAsDeclaration(one)
		must(err)
		options = append(options, option)
	}
	env, err := env.Extend(options...)
	if err != nil {
		found.CompileError = err.Error()
		return
	}
	ast, issues := env.Compile(test.Expr)
	if issues.Err() != nil {
		found.CompileError = issues.Err().Error()
		return
	}
	found.Type = ast.OutputType().String()
	estimator := &library.CostEstimator{}
	program, err := env.Program(ast, cel.CostLimit(1000000), cel.CostTracking(estimator), cel.InterruptCheckFrequency(100))
	if err != nil {
		found.ProgramError = err.Error()
		return
	}
	bindings := map[string]any{}
	for name, bound := range test.Bindings {
		if bindings[name], err = cel.ProtoAsValue(env.CELTypeAdapter(), bound.GetValue()); err != nil {
			found.EvalError = "binding: " + err.Error()
			return
		}
	}
	value, details, err := program.Eval(bindings)
	if cost := details.ActualCost(); cost != nil {
		found.Cost = *cost
	}
	for range 20 {
		_, again, _ := program.Eval(bindings)
		found.Varies = found.Varies || *again.ActualCost() != found.Cost
	}
	if err != nil {
		found.EvalError = err.Error()
		return
	}
	shown, err := cel.ValueAsProto(value)
	if err != nil {
		return
	}
	found.Value, err = protojson.Marshal(shown)
	must(err)
	return
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
